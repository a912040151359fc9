// The time of a split: by hand, and by the program's event simulation.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "base/error.h"
#include "plan/decisions/split_model.h"
#include "plan/decisions/whole_layer.h"
#include "plan/event_simulation.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

using Catch::Approx;
using OnDevice = std::vector<uint8_t>;

TEST_CASE("split model: four experts by hand") {
  SplitCase c(4);
  c.tokens = {40, 10, 20, 5};
  c.set_bytes(30);
  c.problem.in = {10, 0};  // three seconds for an expert
  c.problem.out = {20, 1};
  c.state(0).where = Where::here, c.state(0).bytes_left = 0;
  c.state(2).where = Where::coming, c.state(2).here_in_s = 7;
  c.passes[0].in_free_s = 7;
  c.passes[0].choice_out_bytes = 0.5;
  c.passes[0].row_in_bytes = 2;
  c.passes[0].gradient_bytes = 40;
  c.passes[0].host_call_bytes = 30;
  c.problem.memory_bytes_per_s = 4;
  const SplitModel model(c.get());
  CHECK(std::vector<int32_t>(model.ranking().begin(), model.ranking().end()) ==
        std::vector<int32_t>{0, 2, 1, 3});
  // Experts 0, 2 and 1 on the device: 4 s, then from 7 s on 2 s, then from 10 s on 1 s.
  const PassTimes t = model.times(0, OnDevice{1, 1, 1, 0});
  CHECK(t.device == Approx(11));
  // Out go 37.5 bytes for the 75 choices, with a second of latency; 5 s; 10 bytes in for 5 of them.
  CHECK(t.host == Approx(1 + 1.875 + 5 + 1));
  CHECK(t.in == Approx(7 + 3 + 1));
  CHECK(t.out == Approx(3 * (1 + 2) + 2.875));
  // One load, three gradients, one call, tokens out, rows in.
  CHECK(t.memory == Approx((30 + 120 + 30 + 37.5 + 10) / 4.0));
  CHECK(t.makespan() == Approx(56.875));
  // The host computes what the tokens brought after 2.875 s once its cores are free.
  c.passes[0].host_free_s = 6;
  CHECK(model.times(0, OnDevice{1, 1, 1, 0}).host == Approx(6 + 5 + 1));
  CHECK(model.times(0, OnDevice{1, 1, 1, 1}).host == 0);
  c.passes[0].host_free_s = 0;
  // Without loads, nothing waits for the link.
  const PassTimes without = model.times(0, OnDevice{1, 0, 0, 0});
  CHECK(without.device == Approx(4));
  CHECK(without.in == Approx(7));  // rows alone
  CHECK(model.times(0, OnDevice{1, 1, 1, 1}).host == 0);
  CHECK(model.host_seconds(1) == Approx(10));
  CHECK(model.device_seconds(1) == Approx(3 + 1));
  CHECK(model.is_given(2));
  CHECK_FALSE(model.is_given(3));
}

TEST_CASE(
    "split model: calls by micro-batch pay for each, unknown micro-batches count as the others") {
  SplitCase c(2);
  c.tokens = {10, 0, 20, 6};  // two of four micro-batches
  c.problem.micro_batches = 4;
  c.host[0] = line(100, 1);
  c.device[0] = line(5, 0);
  c.problem.host_calls = ExpertCalls::per_micro_batch;
  c.problem.device_calls = ExpertCalls::per_group;
  c.passes[0].host_call_bytes = 7;
  c.problem.memory_bytes_per_s = 1;
  {
    const SplitModel model(c.get());
    CHECK(model.tokens(0) == 60);
    CHECK(model.tokens(1) == 12);
    CHECK(model.host_seconds(0) == Approx(2 * (110 + 120)));
    CHECK(model.host_seconds(1) == Approx(2 * 106));
    CHECK(model.times(0, OnDevice{0, 0}).memory == Approx(7 * (4 + 2)));
    CHECK(model.times(0, OnDevice{1, 1}).device == Approx(10));
  }
  c.problem.host_calls = ExpertCalls::per_group;
  c.problem.device_calls = ExpertCalls::per_micro_batch;
  const SplitModel model(c.get());
  CHECK(model.host_seconds(0) == Approx(160));
  CHECK(model.times(0, OnDevice{0, 0}).memory == Approx(14));
  CHECK(model.times(0, OnDevice{1, 1}).device == Approx(4 * 5 + 2 * 5));
}

/// The end of every resource, by the simulator's machine.
PassTimes simulated(const SplitProblem& p, const SplitModel& model, size_t pass,
                    const OnDevice& on_device) {
  const SplitPass& of = p.passes[pass];
  std::vector<TaskLoad> loads;
  std::vector<std::vector<int32_t>> streams(4), after;  // device, in, host, out
  const auto add = [&](size_t stream, double seconds, std::vector<int32_t> follows) {
    const auto task = static_cast<int32_t>(loads.size());
    TaskLoad load;
    load.seconds = seconds;
    loads.push_back(load);
    after.push_back(std::move(follows));
    streams[stream].push_back(task);
    return task;
  };
  const auto over = [](const LinkRate& link, double bytes) {
    return bytes > 0 ? link.latency_s + bytes / link.bytes_per_s : 0;
  };
  double rows = 0, host_s = 0, gradients = 0;
  std::vector<int32_t> here, coming, loaded;
  for (const int32_t e : model.ranking()) {
    if (on_device[static_cast<size_t>(e)] == 0) {
      rows += model.tokens(e);
      host_s += model.host_seconds(pass, e);
      continue;
    }
    gradients += over(p.out, of.gradient_bytes);
    const Where where = of.experts[static_cast<size_t>(e)].where;
    (where == Where::here ? here : where == Where::coming ? coming : loaded).push_back(e);
  }
  std::stable_sort(coming.begin(), coming.end(), [&](int32_t a, int32_t b) {
    return of.experts[static_cast<size_t>(a)].here_in_s <
           of.experts[static_cast<size_t>(b)].here_in_s;
  });
  const auto computes = [&](int32_t e, std::vector<int32_t> follows) {
    OnDevice alone(on_device.size());
    alone[static_cast<size_t>(e)] = 1;
    // Its own time: that of a split in which it is alone, less its arrival.
    double s = 0;
    for (int64_t m = 0; m < p.known(); ++m) {
      const double n = p.tokens[static_cast<size_t>(m * p.experts + e)];
      if (p.device_calls == ExpertCalls::per_micro_batch && n > 0) s += of.device->at(n);
    }
    s *= p.micro_batches / static_cast<double>(p.known());
    if (p.device_calls == ExpertCalls::per_group) s = of.device->at(model.tokens(e));
    return add(0, s, std::move(follows));
  };
  for (const int32_t e : here) computes(e, {});
  for (const int32_t e : coming) {
    const size_t extra = streams.size();
    streams.emplace_back();
    computes(e, {add(extra, of.experts[static_cast<size_t>(e)].here_in_s, {})});
  }
  if (!loaded.empty()) add(1, of.in_free_s, {});
  for (const int32_t e : loaded) {
    computes(e, {add(1, over(p.in, of.experts[static_cast<size_t>(e)].bytes_left), {})});
  }
  PassTimes t;
  const EventTimes times = EventSimulation(streams, after).run(loads, {});
  const auto end_of = [&](size_t stream) {
    return streams[stream].empty() ? 0 : times.end[static_cast<size_t>(streams[stream].back())];
  };
  double all = 0;
  for (const int32_t e : model.ranking()) all += model.tokens(e);
  const double out = over(p.out, all * of.choice_out_bytes),
               in = over(p.in, rows * of.row_in_bytes);
  t.device = end_of(0);
  t.in = end_of(1) + in;
  t.host = host_s > 0 ? std::max(out, of.host_free_s) + host_s + in : 0;
  t.out = (gradients > 0 ? of.out_free_s + gradients : 0) + out;
  return t;
}

TEST_CASE("split model: the event simulation has the same times") {
  std::mt19937_64 random(5);
  int waits = 0;
  for (int round = 0; round < 2000; ++round) {
    RandomSplitCase c(random, 1 + static_cast<int64_t>(random() % 12));
    const SplitProblem& p = c.get();
    const SplitModel model(p);
    OnDevice on_device(static_cast<size_t>(p.experts));
    for (uint8_t& at : on_device) at = random() % 2;
    for (size_t pass = 0; pass < p.passes.size(); ++pass) {
      const PassTimes t = model.times(pass, on_device);
      const PassTimes other = simulated(p, model, pass, on_device);
      REQUIRE(t.device == Approx(other.device).margin(1e-12));
      REQUIRE(t.in == Approx(other.in).margin(1e-12));
      REQUIRE(t.host == Approx(other.host).margin(1e-12));
      REQUIRE(t.out == Approx(other.out).margin(1e-12));
      waits += t.device > other.in ? 1 : 0;
    }
  }
  CHECK(waits > 100);
}

TEST_CASE("split model: lists, reasons and the sum over passes") {
  SplitCase c(6, 2);
  c.tokens = {5, 0, 9, 7, 9, 1};
  c.set_bytes(10);
  c.problem.in = {1, 0};
  c.state(3).where = Where::here, c.state(3).bytes_left = 0;
  c.state(5).where = Where::coming, c.state(5).here_in_s = 2;
  c.state(2).where = Where::queued;
  const SplitModel model(c.get());
  const OnDevice on_device = {1, 1, 1, 1, 0, 1};
  const ExpertSplit split = model.split_of(on_device);
  CHECK(split.device == std::vector<int32_t>{3, 5, 2, 0});
  CHECK(split.host == std::vector<int32_t>{4});
  const std::vector<SplitReason> expected = {SplitReason::loaded,     SplitReason::none,
                                             SplitReason::prefetched, SplitReason::resident,
                                             SplitReason::policy,     SplitReason::prefetched};
  CHECK(split.reasons == expected);
  CHECK(split.predicted_s ==
        Approx(model.times(0, on_device).makespan() + model.times(1, on_device).makespan()));
  CHECK(name_of(SplitReason::host_cheaper) == "host-cheaper");
  CHECK(name_of(SplitReason::no_room) == "no-room");
  CHECK(name_of(SplitReason::none).empty());
}

TEST_CASE("policies that do not look at tokens") {
  SplitCase c(4);
  c.tokens = {1, 0, 3, 2};
  c.set_bytes(10);
  c.problem.in = {1, 0};
  c.state(0).where = Where::here, c.state(0).bytes_left = 0;
  ExpertSplit all = split_all_on_device(c.get());
  CHECK(all.device == std::vector<int32_t>{0, 2, 3});
  CHECK(all.host.empty());
  CHECK(all.reasons[0] == SplitReason::policy);
  CHECK(all.reasons[1] == SplitReason::none);
  c.problem.device_experts = 2;  // what is there, and the most popular
  all = split_all_on_device(c.get());
  CHECK(all.device == std::vector<int32_t>{0, 2});
  CHECK(all.reasons[3] == SplitReason::no_room);
  const ExpertSplit none = split_all_on_host(c.get());
  CHECK(none.host == std::vector<int32_t>{2, 3, 0});
  CHECK(none.device.empty());
  CHECK(none.reasons[2] == SplitReason::policy);
}

TEST_CASE("split model: problems of wrong shape are bugs") {
  SplitCase c(3);
  c.tokens = {1, 2};
  CHECK_THROWS_AS(SplitModel(c.get()), std::logic_error);
  c.tokens = {1, 2, 3, 4, 5, 6};  // two micro-batches of one
  CHECK_THROWS_AS(SplitModel(c.get()), std::logic_error);
  c.tokens = {1, 2, 3};
  CHECK_NOTHROW(SplitModel(c.get()));
  c.problem.passes = {};
  CHECK_THROWS_AS(SplitModel(c.problem), std::logic_error);
}

}  // namespace
}  // namespace hearth::test
