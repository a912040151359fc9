// Simulated schedules: by hand over several devices, and what holds for every schedule.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "plan/cost_model.h"
#include "plan/simulator.h"
#include "plan/step_use.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

using Catch::Approx;

/// A schedule by hand: each task writes a buffer of its own and reads those of others.
struct HandSchedule {
  Schedule schedule;
  std::vector<TaskDemand> demands;

  /// For the host `host_streams`, for each device compute, copy in and copy out.
  explicit HandSchedule(int devices, int host_streams = 1) {
    schedule.streams.clear();
    for (int s = 0; s < host_streams; ++s) schedule.streams.push_back({"host", kHostPlace});
    schedule.arena_bytes.assign(static_cast<size_t>(devices) + 1, 0);
    schedule.places = places_of_rank(schedule.arena_bytes.size());
    for (Place p = 1; p <= devices; ++p) {
      for (const StreamUse use : {StreamUse::compute, StreamUse::copy_in, StreamUse::copy_out}) {
        schedule.streams.push_back({"device", p, use});
      }
    }
  }
  int32_t stream_of(Place place, StreamUse use) const {
    const auto at = std::ranges::find_if(
        schedule.streams, [&](const StreamPlan& s) { return s.place == place && s.use == use; });
    return static_cast<int32_t>(at - schedule.streams.begin());
  }
  BufferId new_buffer(Place place) {
    Buffer buffer;
    buffer.place = place;
    buffer.bytes = 64;
    buffer.address = schedule.arena_bytes[static_cast<size_t>(place)];
    schedule.arena_bytes[static_cast<size_t>(place)] += 64;
    schedule.buffers.push_back(buffer);
    return static_cast<BufferId>(schedule.buffers.size()) - 1;
  }
  static BufferUse use(BufferId buffer, Access access) {
    Port port;
    port.access = access;
    return {buffer, port};
  }
  /// Returns what it wrote.
  BufferId compute(Place place, double seconds, const std::vector<BufferId>& reads = {},
                   int32_t stream = -1) {
    Task task;
    task.place = place;
    task.stream = stream >= 0 ? stream : stream_of(place, StreamUse::compute);
    task.rows = rows_of(static_cast<int32_t>(schedule.tasks.size()));
    for (const BufferId b : reads) task.uses.push_back(use(b, Access::read));
    const BufferId out = new_buffer(place);
    task.uses.push_back(use(out, Access::write));
    schedule.tasks.push_back(task);
    demands.push_back({seconds, 0});
    return out;
  }
  BufferId copy(BufferId from, Place to, double bytes, double latency = 0) {
    const Place source = schedule.buffers[static_cast<size_t>(from)].place;
    Task task;
    task.kind = TaskKind::copy;
    task.place = to == kHostPlace ? source : to;
    task.stream =
        stream_of(task.place, to == kHostPlace ? StreamUse::copy_out : StreamUse::copy_in);
    const BufferId target = new_buffer(to);
    task.uses = {use(from, Access::read), use(target, Access::write)};
    schedule.tasks.push_back(task);
    demands.push_back({latency, bytes});
    return target;
  }
  StepUse use(const SimulatedStep& step) const {
    std::vector<std::string> names = {"host"};
    for (size_t p = 1; p < schedule.arena_bytes.size(); ++p) {
      names.push_back("device " + std::to_string(p));
    }
    return use_of(schedule, step.trace, names);
  }
  SimulatedStep run(const std::vector<LinkRates>& links = {}) const {
    return Simulator(schedule, links).run(demands);
  }
};

TEST_CASE("simulator: streams of a step overlap, and copies take their links' time") {
  HandSchedule hand(1);
  const BufferId a = hand.compute(0, 2);
  const BufferId there = hand.copy(a, 1, 1000, 0.5);  // 2.0 to 2.5, then 1 s on the link
  hand.compute(0, 4);                                 // 2 to 6, beside it
  const BufferId b = hand.compute(1, 3, {there});     // 3.5 to 6.5
  const BufferId back = hand.copy(b, 0, 500);         // 6.5 to 6.75
  hand.compute(0, 1, {back});                         // 6.75 to 7.75
  const std::vector<LinkRates> links = {{}, {{1000, 9}, {2000, 9}}};
  const SimulatedStep step = hand.run(links);
  CHECK(step.time_s == Approx(7.75));
  const std::vector<double> begins = {0, 2, 2, 3.5, 6.5, 6.75};
  for (const TaskTime& time : step.trace) {
    CHECK(time.begin == Approx(begins[static_cast<size_t>(time.task)]));
  }
  const StepUse use = hand.use(step);
  CHECK(use.busy.at("cpu") == Approx(7));
  CHECK(use.busy.at("device 1") == Approx(3));
  CHECK(use.busy.at("host->device 1") == Approx(1.5));
  CHECK(use.busy.at("device 1->host") == Approx(0.25));
  CHECK(use.bytes.at("host->device 1") == 1000);
  CHECK(use.limit() == "cpu");
  CHECK(step.stall_s[0] == Approx(0.75));
  CHECK(step.stall_s[1] == Approx(3.5));
  // A link that is not described does not hold a copy.
  CHECK(hand.run().time_s == Approx(7));  // the latency alone
}

TEST_CASE("simulator: a slow link bounds the step") {
  HandSchedule hand(1);
  BufferId last = hand.compute(0, 1);
  for (int i = 0; i < 5; ++i) hand.compute(1, 0.1, {hand.copy(last, 1, 100)});
  const SimulatedStep step = hand.run({{}, {{100, 0}, {1, 0}}});
  CHECK(step.time_s == Approx(1 + 5 + 0.1));
  CHECK(hand.use(step).limit() == "host->device 1");
}

TEST_CASE("simulator: devices below a root complex share it, others do not") {
  const RootComplex root(10), other(10);
  const auto seconds = [&](const RootComplex* first, const RootComplex* second) {
    HandSchedule hand(2);
    const BufferId a = hand.compute(0, 1);
    hand.copy(a, 1, 80);
    hand.copy(a, 2, 40);
    return hand.run({{}, {{8, 0}, {8, 0}, first}, {{8, 0}, {8, 0}, second}}).time_s;
  };
  CHECK(seconds(nullptr, nullptr) == Approx(1 + 10));
  CHECK(seconds(&root, &other) == Approx(1 + 10));
  // 5 each until the second is there; then 40 bytes are left for a link of 8.
  CHECK(seconds(&root, &root) == Approx(1 + 8 + 5));

  // Directions are apart.
  HandSchedule hand(2);
  const BufferId a = hand.compute(0, 0), b = hand.compute(2, 0);
  hand.copy(a, 1, 80);
  hand.copy(b, 0, 80);
  CHECK(hand.run({{}, {{8, 0}, {8, 0}, &root}, {{8, 0}, {8, 0}, &root}}).time_s == Approx(10));
}

TEST_CASE("simulator: a copy between two devices passes both links") {
  const std::vector<LinkRates> links = {{}, {{4, 0.5}, {8, 0.25}}, {{2, 3}, {16, 4}}};
  HandSchedule hand(2);
  const BufferId a = hand.compute(1, 1), h = hand.compute(0, 0);
  hand.copy(a, 2, 8);  // 2 is the slower rate
  CHECK(hand.run(links).time_s == Approx(1 + 4));
  Schedule any;
  any.places = places_of_rank(8);
  CHECK(copy_latency(any, {1, 2}, links) == 0.25 + 3);
  CHECK(copy_latency(any, {0, 1}, links) == 0.5);
  CHECK(copy_latency(any, {2, 0}, links) == 4);
  CHECK(copy_latency(any, {0, 7}, links) == 0);
  // It shares the link into the second device with a copy from the host. The stream of copies into
  // that device would carry one after the other, so the second copy is on another stream.
  hand.demands[0].seconds = 0;
  hand.schedule.tasks.push_back(hand.schedule.tasks.back());
  hand.schedule.tasks.back().stream = hand.stream_of(2, StreamUse::copy_out);
  hand.schedule.tasks.back().uses = {HandSchedule::use(h, Access::read),
                                     HandSchedule::use(hand.new_buffer(2), Access::write)};
  hand.demands.push_back({0, 8});
  CHECK(hand.run(links).time_s == Approx(8));
  CHECK(hand.use(hand.run(links)).busy.at("device 1->device 2") == Approx(8));
}

TEST_CASE("simulator: several streams of the host run beside each other") {
  HandSchedule hand(2, 2);
  for (const int32_t stream : {0, 1}) {
    const Place device = stream + 1;
    const BufferId a = hand.compute(device, 1);
    const BufferId here = hand.copy(a, 0, 10);
    hand.compute(0, 5, {here}, stream);
  }
  const SimulatedStep step = hand.run({{}, {{10, 0}, {10, 0}}, {{10, 0}, {10, 0}}});
  CHECK(step.time_s == Approx(7));
  CHECK(hand.use(step).busy.at("cpu") == Approx(5));  // both streams at the same time
}

/// A host that updates weights while a device waits for the host's part of a layer's experts.
struct HostPart {
  HandSchedule hand{1, 2};

  explicit HostPart(int32_t experts) {
    hand.schedule.decides = true;
    const BufferId a = hand.compute(1, 2);  // 0
    hand.compute(0, 1, {hand.copy(a, 0, 0)}, 1);
    Task& decide = hand.schedule.tasks[2];
    decide.kind = TaskKind::decide;
    const BufferUse split = as_split(decide.uses.back());
    decide.uses.back() = split;
    hand.compute(0, 10);                           // 3: the update
    const BufferId tokens = hand.copy(a, 0, 100);  // 4
    reads(split);
    const BufferId out = hand.compute(0, 5, {tokens}, 0);  // 5
    hand.schedule.tasks.back().kind = TaskKind::experts;
    hand.schedule.tasks.back().part = {kHostPlace, experts};
    reads(split);
    const BufferId there = hand.copy(out, 1, 50);  // 6
    reads(split);
    hand.compute(1, 1, {there});  // 7
    hand.compute(0, 1, {}, 0);    // 8
  }
  static BufferUse as_split(BufferUse use) {
    use.port.value = Value::split;
    return use;
  }
  void reads(BufferUse split) {
    split.port.access = Access::read;
    hand.schedule.tasks.back().uses.push_back(split);
  }
  std::vector<double> begins(double* last) const {
    const SimulatedStep step = hand.run({{}, {{100, 0}, {100, 0}}});
    *last = step.time_s;
    std::vector<double> begins(step.trace.size());
    for (const TaskTime& time : step.trace) {
      begins[static_cast<size_t>(time.task)] = time.begin;
      copied += time.bytes;
    }
    return begins;
  }
  mutable uint64_t copied = 0;
};

TEST_CASE("simulator: a device does not wait for an empty part behind the host's updates") {
  double last = 0;
  const HostPart some(3), none(0);
  CHECK(some.begins(&last) == std::vector<double>{0, 2, 2, 0, 3, 10, 15, 15.5, 15});
  CHECK(last == 16.5);
  CHECK(some.copied == 150);
  // Its tokens do not come, and its stream passes it behind the update.
  CHECK(none.begins(&last) == std::vector<double>{0, 2, 2, 0, 3, 10, 3, 3, 10});
  CHECK(last == 11);
  CHECK(none.copied == 0);
}

TEST_CASE("simulator: orders of issue that wait for each other are refused by the tasks' names") {
  HandSchedule hand(1);
  const BufferId a = hand.compute(0, 1);           // 0
  const BufferId there = hand.copy(a, 1, 1);       // 1
  const BufferId b = hand.compute(1, 1, {there});  // 2
  hand.compute(0, 1, {hand.copy(b, 0, 1)});        // 3, 4
  const std::vector<LinkRates> links;
  CHECK_NOTHROW(Simulator(hand.schedule, links, {{0, 4}, {2}, {1}, {3}}));
  // The last task of the host comes first, and waits for what waits for the first.
  CHECK_THROWS_MATCHES(Simulator(hand.schedule, links, {{4, 0}, {2}, {1}, {3}}), std::logic_error,
                       Catch::Matchers::MessageMatches(
                           Catch::Matchers::ContainsSubstring("tasks wait for each other: ") &&
                           Catch::Matchers::ContainsSubstring("micro-batch 0") &&
                           Catch::Matchers::ContainsSubstring("micro-batch 4") &&
                           Catch::Matchers::ContainsSubstring("micro-batch 2 at place 1")));
}

/// The tiny model over a host and two devices, with its schedule and what its tasks take.
struct PlacedStep {
  TinyModel model;
  Schedule schedule;
  std::vector<BatchWork> batches;
  CostRates rates;

  PlacedStep(uint64_t seed, bool recompute, int64_t group)
      : model(
            tiny_config({{"num_hidden_layers", 3}, {"mlp_only_layers", JsonArray{1}}}), cpu(),
            DType::f32, 1, {},
            {virtual_devices(2), [=](ParameterTable& table) { place_at_random(table, 3, seed); }}),
        schedule(single_train_schedule(model.input(32, 32, 4), group, recompute)),
        batches(4, full_batch(30, 15)) {
    const Random random(seed, RandomSite::shuffle, 5);
    uint64_t draw = 0;
    for (int p = 0; p < 3; ++p) {
      std::vector<CostEntry> entries;
      for (const TaskKind kind : {TaskKind::embed, TaskKind::attention, TaskKind::mlp,
                                  TaskKind::dispatch, TaskKind::experts, TaskKind::combine,
                                  TaskKind::head, TaskKind::norm, TaskKind::update}) {
        for (const Phase phase : {Phase::forward, Phase::backward}) {
          CostEntry e;
          e.kind = kind;
          e.phase = phase;
          e.units = {1, 1 + static_cast<int64_t>(random.below(draw++, 1000))};
          if (e.units[1] == 1) e.units.pop_back();
          for (size_t i = 0; i < e.units.size(); ++i) {
            e.seconds.push_back((i == 0 ? 0 : e.seconds[0]) + random.uniform(draw++) * 1e-3);
          }
          entries.push_back(e);
        }
      }
      rates.tables.push_back(
          {std::make_shared<const CostTable>(entries, std::vector<CostLink>{}), 1, Compute::f32});
      const auto rate = [&] {
        return LinkRate{1e5 + 1e7 * random.uniform(draw++), 1e-5 * random.uniform(draw++)};
      };
      rates.links.push_back({rate(), rate()});
    }
  }
  static const OpSet& cpu() {
    register_all_op_sets();
    return find_op_set("cpu");
  }
  SimulatedStep run() const {
    return Simulator(schedule, rates.links)
        .run(task_demands(schedule, batches, model.spec, model.table, rates));
  }
};

TEST_CASE("simulator: no step is below its bound, above its sum, or slower with faster links") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    PlacedStep step(seed, seed % 2 == 0, 1 + static_cast<int64_t>(seed % 3));
    const auto bound = [&] {
      return step_bound_by_tables(step.schedule, step.batches, step.model.spec, step.model.table,
                                  {1, 1}, step.rates.tables)
          .total_s();
    };
    const double sum =
        step_cost(step.schedule, step.batches, step.model.spec, step.model.table, step.rates)
            .total_s();
    RootComplex root(1.01e7);
    step.rates.links[1].root = step.rates.links[2].root = &root;
    double last = step.run().time_s;
    CHECK(last >= bound());
    // At most four copies share a direction of the root complex.
    CHECK(last <= 4 * sum);
    step.rates.links[1].root = step.rates.links[2].root = nullptr;
    CHECK(step.run().time_s <= last * (1 + 1e-12));
    CHECK(step.run().time_s < sum * (1 + 1e-12));
    for (int faster = 0; faster < 6; ++faster) {
      for (LinkRates& link : step.rates.links) {
        link.in.bytes_per_s *= 1.5;
        link.out.bytes_per_s *= 1.25;
        link.in.latency_s *= 0.5;
      }
      const double now = step.run().time_s;
      CHECK(now <= last * (1 + 1e-12));
      CHECK(now >= bound());
      last = now;
    }
    // Only the links' share goes away.
    for (LinkRates& link : step.rates.links) link = {};
    CHECK(step.run().time_s <= last);
    CHECK(step.run().time_s >= bound());
  }
}

TEST_CASE("simulator: a copy of a part uses the link of its place, and carries its share") {
  const TinyModel model(tiny_config(), PlacedStep::cpu(), DType::f32, 1, {},
                        {virtual_devices(2), [](ParameterTable& table) {
                           place_blocks(table, {{{.place = 1}}, {kHostPlace, 2}});
                         }});
  const Schedule schedule = single_train_schedule(model.input(32, 32, 1), 1, false);
  CostRates rates;
  rates.links = {{}, {{1e6, 0.5}, {1e6, 0.5}}, {{1e6, 0}, {1e6, 0}}};
  rates.tables.assign(3, {std::make_shared<const CostTable>(), 1, Compute::f32});
  const std::vector<BatchWork> batches = {full_batch(32, 32)};
  const auto demands = task_demands(schedule, batches, model.spec, model.table, rates);
  const std::vector<std::string> names = {"host", "a", "b"};
  const double rows = 32.0 * static_cast<double>(model.spec.experts_per_token) *
                      static_cast<double>(model.spec.hidden) * 4;
  std::map<std::string, double> of_link;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const Value value = task.kind == TaskKind::copy ? task.uses[0].port.value : Value::ids;
    if (value != Value::d_rows && value != Value::expert_out) continue;
    CHECK_FALSE(task.part.all());
    const auto experts = static_cast<double>(task.part.experts);
    CHECK(demands[t].bytes == Approx(rows * experts / static_cast<double>(model.spec.experts)));
    of_link[link_name(schedule, task, names)] += demands[t].bytes;
  }
  const auto layers = static_cast<double>(model.spec.layers);
  CHECK(of_link.size() == 2);
  CHECK(of_link["host->a"] + of_link["b->a"] == Approx(2 * layers * rows));
}

TEST_CASE("simulator: a step at one place takes the sum of its tasks, in their order") {
  const TinyModel& model = shared_tiny_model();
  const Schedule schedule = single_train_schedule(model.input(32, 32, 2), 2, true);
  std::vector<TaskDemand> demands;
  double sum = 0;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    demands.push_back({static_cast<double>(t % 7) / 8, 0});
    sum += demands.back().seconds;
  }
  const SimulatedStep step = Simulator(schedule, {}).run(demands);
  CHECK(step.time_s == sum);
  CHECK(step.stall_s == std::vector<double>{0});
  REQUIRE(step.trace.size() == schedule.tasks.size());
  for (size_t t = 0; t < step.trace.size(); ++t) {
    CHECK(step.trace[t].task == static_cast<TaskId>(t));
  }
  CHECK_THROWS_AS(Simulator(schedule, {}).run(std::vector<TaskDemand>(3)), std::logic_error);
}

}  // namespace
}  // namespace hearth::test
