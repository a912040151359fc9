// Measured tasks: the model that they are cut from, what they compute on, and what a table says.
#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

#include "device/host_device.h"
#include "device/host_stream.h"
#include "device/virtual_device.h"
#include "runtime/link_profile.h"
#include "runtime/place_profile.h"
#include "runtime/profile_fixture.h"
#include "support/allowed_cpus.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

using Catch::Approx;

TEST_CASE("bench model: one layer of each kind, cut until it fits") {
  const Shapes shapes;  // two layers with five experts, no dense one
  const BenchModel whole = shapes.subject().model;
  CHECK(whole.moe_layer == 0);
  CHECK(whole.dense_layer == 1);
  CHECK(whole.held_experts == 5);
  CHECK(whole.head_share == 1);
  CHECK(whole.spec.layers == 2);
  CHECK(whole.spec.moe == std::vector<bool>{true, false});
  CHECK(whole.spec.dense_width == 2 * 12);  // as wide as the experts of a token
  for (const Block& block : whole.table.blocks()) CHECK(block.place == kHostPlace);

  const uint64_t all = parameter_bytes(shapes.subject());
  for (const uint64_t bytes : {all * 3 / 4, all * 11 / 20}) {
    const BenchSubject cut = shapes.subject(Compute::f32, kHostPlace, bytes);
    INFO(bytes);
    CHECK(parameter_bytes(cut) <= bytes);
    CHECK((cut.model.held_experts < 5 || cut.model.spec.vocabulary < 37));
    CHECK(cut.model.held_experts >= 1);
    CHECK(cut.model.head_share == Approx(static_cast<double>(cut.model.spec.vocabulary) / 37));
    CHECK(cut.model.spec.experts == 5);  // the router has all
  }
  CHECK(raised_by([&] { shapes.subject(Compute::f32, kHostPlace, 1000); }).code == ExitCode::usage);
}

TEST_CASE("bench model: dense layers and adapters are the model's own") {
  const Shapes mixed({{"mlp_only_layers", JsonArray{0}}});
  const BenchModel model = mixed.subject().model;
  CHECK(model.spec.dense_width == 20);
  CHECK(model.table.find("model.layers.0.mlp.gate_proj.weight"));
  CHECK(model.table.find("model.layers.1.mlp.experts.4.down_proj.weight"));
  const Shapes adapted({}, {"attention", "experts"});
  const BenchModel with = adapted.subject().model;
  const BlockId expert = with.table.find_block(BlockKind::expert, 0, 2);
  CHECK(with.table.rank_of(expert, expert + 1) == 3);
  const BlockId attention = with.table.find_block(BlockKind::attention, 0);
  CHECK(with.table.rank_of(attention, attention + 1) == 2);
}

TEST_CASE("task bench: tasks compute on what a step gives them") {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const auto device = make_host_device(kPlenty);
  const BenchPlace place{*device, cpu()};
  int calls = 0;
  const Decorated experts(TaskKind::experts, [&](const BodyContext& c) {
    ++calls;
    const ConstView offsets = c.in(Value::route_offsets);
    REQUIRE(offsets.rows == c.spec.experts + 1);
    for (int64_t e = 0; e <= c.spec.experts; ++e) {
      CHECK(offsets.as<int32_t>()[e] == e * c.batch.tokens / c.spec.experts);
    }
    const ConstView tokens = c.in(Value::normed);
    std::set<float> values(tokens.as<float>(), tokens.as<float>() + tokens.size());
    CHECK(values.size() >= 5);
    CHECK(*values.rbegin() < .1);
  });
  const Decorated dispatch(TaskKind::dispatch, [&](const BodyContext& c) {
    ++calls;
    const ConstView choice = c.in(Value::choice);
    for (int64_t t = 0; t < choice.rows; ++t) {
      const std::set<int32_t> distinct(choice.row<int32_t>(t),
                                       choice.row<int32_t>(t) + choice.cols);
      REQUIRE(std::ssize(distinct) == choice.cols);
      CHECK((*distinct.begin() >= 0 && *distinct.rbegin() < c.spec.experts));
    }
  });
  const Decorated attention(TaskKind::attention, [&](const BodyContext& c) {
    ++calls;
    CHECK(c.batch.sequences == (c.batch.tokens + 15) / 16);
    const ConstView offsets = c.in(Value::query_offsets);
    CHECK(offsets.as<int32_t>()[c.batch.sequences] == c.batch.tokens);
    CHECK(offsets.as<int32_t>()[1] == std::min<int64_t>(16, c.batch.tokens));
  });
  std::vector<TaskSize> sizes;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    sizes.push_back({TaskKind::experts, phase, 0, 12, 3});
    sizes.push_back({TaskKind::attention, phase, 0, 40});
  }
  sizes.push_back({TaskKind::dispatch, Phase::forward, 0, 7});
  TaskBench bench(place, subject, sizes);
  for (const TaskSize& size : sizes) {
    const std::vector<double> seconds = bench.run(size, 3);
    REQUIRE(seconds.size() == 3);
    for (const double s : seconds) CHECK((s > 0 && s < 10));
  }
  CHECK(calls == 5 * 4);
  // What was not planned has no memory.
  CHECK_THROWS_AS(bench.run({TaskKind::attention, Phase::backward, 0, 400}, 1), std::logic_error);
}

TEST_CASE("place profile: a table of every kind, experts at twenty numbers of tokens") {
  const Shapes shapes;
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    for (const bool on_device : {false, true}) {
      INFO(on_device);
      const auto device = on_device ? make_virtual_device({}) : make_host_device(kPlenty);
      const Place at = on_device ? 1 : kHostPlace;
      BenchSubject subject = shapes.subject(compute, at);
      BenchPlace place{*device, cpu(), on_device ? SpaceKind::device : SpaceKind::host, at};
      ProfileOptions options{.seconds = 1, .max_bytes = kPlenty, .most_tokens = 64, .cores = 1};
      double last = 0;
      options.progress = [&](double share) {
        CHECK((share >= last && share <= 1));
        last = share;
        return true;
      };
      const PlaceProfile profile = profile_place(place, subject, options);
      // What a file may say.
      const CostTable table(profile.entries, {}, "measured");
      CHECK(table.entries().size() == profile.entries.size());
      for (const TaskKind kind : {TaskKind::embed, TaskKind::attention, TaskKind::mlp,
                                  TaskKind::dispatch, TaskKind::experts, TaskKind::combine}) {
        INFO(name_of(kind));
        REQUIRE(find(profile, kind, Phase::forward) != nullptr);
        REQUIRE(find(profile, kind, Phase::backward) != nullptr);
      }
      for (const TaskKind kind : {TaskKind::head, TaskKind::norm, TaskKind::update}) {
        REQUIRE(find(profile, kind, Phase::forward) != nullptr);
      }
      const CostEntry& experts = *find(profile, TaskKind::experts, Phase::backward);
      CHECK(experts.units.size() >= 20);
      CHECK(experts.dtype == compute);
      CHECK(experts.cores == 1);
      CHECK(experts.shape == CostShape{24, 12});
      CHECK(find(profile, TaskKind::head, Phase::forward)->shape == CostShape{24, 37});
      const CostEntry& attention = *find(profile, TaskKind::attention, Phase::forward);
      CHECK(attention.shape == CostShape{24, 32});
      REQUIRE(attention.pairs.size() == attention.units.size());
      for (size_t i = 0; i < attention.units.size(); ++i) {
        const int64_t n = attention.units[i], whole = n / 16, rest = n % 16;
        CHECK(attention.pairs[i] == whole * 16 * 17 / 2 + rest * (rest + 1) / 2);
      }
      const CostEntry& norm = *find(profile, TaskKind::norm, Phase::forward);
      double parameters = 0;
      for (const Tensor& t : subject.model.table.tensors())
        parameters += static_cast<double>(t.size());
      CHECK(norm.units == std::vector{static_cast<int64_t>(parameters)});
      CHECK(find(profile, TaskKind::update, Phase::forward)->units.size() >= 3);
    }
  }
}

TEST_CASE("task bench: the thread that measured sees all of its cores again") {
  const std::set<int> before = allowed_cpus();
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const auto device = make_host_device(kPlenty);
  BenchPlace place{*device, cpu()};
  place.cores = {*before.begin()};
  size_t bound = 0;
  const Decorated embed(TaskKind::embed, [&](const BodyContext& c) {
    host_stream(c.stream).pool().run(1, [&](int64_t, int) { bound = allowed_cpus().size(); });
  });
  const TaskSize size{TaskKind::embed, Phase::forward, -1, 4};
  { TaskBench(place, subject, std::array{size}).run(size, 1); }
  CHECK(bound == 1);
  CHECK(allowed_cpus() == before);
}

TEST_CASE("place profile: times are those of the tasks") {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const auto device = make_host_device(kPlenty);
  const auto wait = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  // Ten milliseconds for each expert that is called, and 50 microseconds for each of its tokens.
  const Decorated experts(
      TaskKind::experts,
      [&](const BodyContext& c) {
        const double each = 1e-2 + 5e-5 * static_cast<double>(c.batch.tokens / c.spec.experts);
        wait(static_cast<double>(c.spec.experts) * each);
      },
      false);
  const Decorated combine(
      TaskKind::combine, [&](const BodyContext&) { wait(3e-3); }, false);
  const BenchPlace place{*device, cpu()};
  const PlaceProfile profile =
      profile_place(place, subject, {.seconds = 2, .max_bytes = kPlenty, .most_tokens = 256});
  const CostEntry& e = *find(profile, TaskKind::experts, Phase::forward);
  for (size_t i = 0; i < e.units.size(); ++i) {
    const double seconds = 1e-2 + 5e-5 * static_cast<double>(e.units[i]);
    INFO(e.units[i]);
    CHECK(e.seconds[i] > .97 * seconds);
    CHECK(e.seconds[i] < 1.9 * seconds + 25e-3);  // other programs take their part
  }
  const CostEntry& c = *find(profile, TaskKind::combine, Phase::forward);
  CHECK(c.seconds.front() > 2.9e-3);
  CHECK(c.seconds.back() < 100e-3);
  CHECK(profile.samples >= profile.points);
  CHECK_FALSE(c.cores);
}

TEST_CASE("place profile: the time is bounded, and every curve has a point") {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const auto device = make_host_device(kPlenty);
  // Tasks that would take a minute in all.
  const Decorated mlp(
      TaskKind::mlp,
      [&](const BodyContext& c) {
        std::this_thread::sleep_for(std::chrono::milliseconds(c.batch.tokens));
      },
      false);
  const auto begin = std::chrono::steady_clock::now();
  const BenchPlace place{*device, cpu()};
  const PlaceProfile profile =
      profile_place(place, subject, {.seconds = 1, .max_bytes = kPlenty, .most_tokens = 8192});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 6);
  const CostEntry& e = *find(profile, TaskKind::mlp, Phase::forward);
  CHECK(e.units.front() == 1);
  CHECK(e.units.back() < 1024);
  CHECK(std::any_of(profile.left_out.begin(), profile.left_out.end(), [&](const std::string& what) {
    return what.starts_with("mlp above ") && what.ends_with(" tokens");
  }));
  // An end by the caller, after the first measurement.
  int calls = 0;
  ProfileOptions ended{.seconds = 1, .max_bytes = kPlenty};
  ended.progress = [&](double) { return ++calls < 3; };
  profile_place(place, subject, ended);
  CHECK(calls == 3);
}

TEST_CASE("place profile: a table that need not be whole keeps its time") {
  const Shapes shapes;
  BenchSubject subject = shapes.subject();
  const auto device = make_host_device(kPlenty);
  int calls = 0;
  // A step of 50 ms, however small.
  const Decorated attention(
      TaskKind::attention,
      [&](const BodyContext&) {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      },
      false);
  const BenchPlace place{*device, cpu()};
  ProfileOptions options{.seconds = .3, .max_bytes = kPlenty, .most_tokens = 512, .whole = false};
  const auto begin = std::chrono::steady_clock::now();
  const PlaceProfile profile = profile_place(place, subject, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 1.5);
  CHECK(calls <= 8);
  CHECK(std::any_of(profile.left_out.begin(), profile.left_out.end(),
                    [](const std::string& what) { return what.starts_with("attention"); }));
  for (const CostEntry& e : profile.entries) {
    if (e.kind == TaskKind::experts) CHECK(e.units.size() >= 20);
  }
  // No time at all: nothing is measured, and everything is named.
  options.seconds = 1e-9;
  const PlaceProfile none = profile_place(place, subject, options);
  CHECK(none.entries.empty());
  CHECK(none.left_out.size() == 9);
  // Whole: a point of each curve, and experts.
  options.whole = true;
  const PlaceProfile whole = profile_place(place, subject, options);
  CHECK(find(whole, TaskKind::experts, Phase::backward)->units.size() >= 20);
  CHECK(find(whole, TaskKind::attention, Phase::backward)->units.size() == 1);
  // Few points, for a quick table.
  options = {.seconds = 5,
             .max_bytes = kPlenty,
             .most_tokens = 64,
             .most_samples = 2,
             .token_points = 3,
             .expert_points = 5};
  calls = 0;
  const PlaceProfile few = profile_place(place, subject, options);
  CHECK(find(few, TaskKind::attention, Phase::forward)->units.size() == 3);
  CHECK(find(few, TaskKind::experts, Phase::forward)->units.size() == 5);
  CHECK(calls <= 2 * 3 * 4);  // two phases, three sizes, two passes, each with a run that warms
  CHECK(few.left_out.empty());
}

TEST_CASE("bench model: a dense layer as in the model") {
  const Shapes shapes;  // without a dense layer
  BenchSubject subject = shapes.subject();
  subject.model = bench_model(shapes.spec, shapes.table, subject.policy, kHostPlace, kPlenty,
                              DenseLayer::as_in_model);
  CHECK(subject.model.dense_layer == -1);
  CHECK(subject.model.spec.layers == 1);
  const auto device = make_host_device(kPlenty);
  const PlaceProfile profile = profile_place({*device, cpu()}, subject,
                                             {.seconds = .2,
                                              .max_bytes = kPlenty,
                                              .most_tokens = 32,
                                              .token_points = 3,
                                              .expert_points = 4});
  CHECK(find(profile, TaskKind::mlp, Phase::forward) == nullptr);
  CHECK(find(profile, TaskKind::head, Phase::forward) != nullptr);
  CHECK(find(profile, TaskKind::combine, Phase::forward) != nullptr);
}

TEST_CASE("place profile: memory stays within its limit") {
  const Shapes shapes;
  const uint64_t most = uint64_t{8} << 20;
  BenchSubject subject = shapes.subject(Compute::f32, 1, most / 2);
  VirtualOptions options;
  options.memory = most + (uint64_t{1} << 20);  // arenas are aligned
  const auto device = make_virtual_device(options);
  const BenchPlace place{*device, cpu(), SpaceKind::device, 1};
  const PlaceProfile profile =
      profile_place(place, subject, {.seconds = .1, .max_bytes = most, .most_tokens = 1 << 16});
  CHECK(find(profile, TaskKind::attention, Phase::forward)->units.back() < 1 << 16);
  CHECK(raised_by([&] {
          profile_place(place, subject, {.seconds = .1, .max_bytes = uint64_t{1} << 20});
        }).code == ExitCode::usage);
}

TEST_CASE("links: a rate beside others is that of whole copies") {
  const CostLink alone{"host->virtual:0", 200e6, 1e-3, 0};
  // A copy of 4 MB at 100 MB/s ends every 41 ms, the latency included.
  const auto carried = [](int64_t copies) {
    return Carried{static_cast<uint64_t>(copies) * 4'000'000, copies,
                   7 + static_cast<double>(copies) * .041};
  };
  for (const int64_t copies : {1, 2, 3, 50}) {
    CHECK(rate_together(carried(2), carried(2 + copies), alone, 4) == Approx(100e6));
  }
  CHECK(rate_together(carried(2), carried(2), alone, 4) == 50e6);  // an even share
  CHECK(rate_together({}, carried(3), alone, 4) == 50e6);          // it has begun late
  const CostLink slower{"host->virtual:0", 80e6, 1e-3, 0};
  CHECK(rate_together(carried(2), carried(5), slower, 4) == 80e6);
}

TEST_CASE("links: what a device states, alone and together") {
  VirtualOptions options;
  options.h2d = 400e6;
  options.d2h = 200e6;
  options.latency = 1e-4;
  options.root = std::make_shared<RootComplex>(300e6);  // of each direction
  const auto one = make_virtual_device(options);
  options.name = "virtual:1";
  const auto other = make_virtual_device(options);
  Device* const devices[] = {one.get(), other.get()};
  const std::vector<CostLink> links = measure_link_costs(devices, .6, 32 << 20);
  REQUIRE(links.size() == 4);
  CHECK(links[0].link == "host->virtual:0");
  CHECK(links[3].link == "virtual:1->host");
  CHECK(links[0].bytes_per_s == 300e6);
  CHECK(links[1].bytes_per_s == 200e6);
  CHECK(links[1].latency_s == 1e-4);
  // Two share 300 MB/s.
  for (const CostLink& link : links) {
    INFO(link.link << " " << link.together);
    CHECK(link.together <= link.bytes_per_s);
    CHECK((link.together > 2e7 && link.together < 190e6));
  }
  CHECK(raised_by([&] { measure_link_costs(devices, .1, 1000); }).code == ExitCode::usage);
  CHECK(measure_link_costs({}, .1, 0).empty());
  // Without a limit the rate is measured.
  const auto plain = make_virtual_device({});
  Device* const unlimited[] = {plain.get()};
  for (const CostLink& link : measure_link_costs(unlimited, .2, 8 << 20)) {
    CHECK(std::isfinite(link.bytes_per_s));
    CHECK(link.bytes_per_s > 1e7);
    CHECK((link.together > 0 && link.together <= link.bytes_per_s));
  }
}

}  // namespace
}  // namespace hearth::test
