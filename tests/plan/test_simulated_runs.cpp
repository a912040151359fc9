// The simulator against the executor: random small schedules on paced virtual devices, run on model
// time, end when the simulator says, task by task.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "modes/pipeline.h"
#include "plan/cost_model.h"
#include "plan/simulator.h"
#include "support/model_time.h"
#include "support/tiny_places.h"

namespace hearth::test {
namespace {

constexpr int64_t kMost = 32;  // tokens of a micro-batch

const OpSet& cpu() {
  register_all_op_sets();
  return find_op_set("cpu");
}

/// A run drawn from a seed: model, places, schedule, links and tables.
class DrawnRun {
 public:
  explicit DrawnRun(uint64_t seed) : random_(seed, RandomSite::shuffle, 77) {
    places_ = static_cast<Place>(1 + below(4));
    const auto layers = static_cast<int64_t>(1 + below(4));
    // Stages on all devices, one after the other, or everything anywhere.
    const bool staged = places_ > 1 && layers >= places_ - 1 && below(2) == 0;
    JsonObject config = {{"num_hidden_layers", layers}};
    if (layers > 1 && below(3) == 0) config.emplace_back("mlp_only_layers", JsonArray{0});
    if (below(4) == 0) {
      config.emplace_back("model_type", "qwen2_moe");
      config.emplace_back("shared_expert_intermediate_size", 9);
    }
    std::vector<std::string> adapters;
    if (below(3) == 0) adapters = {"attention", "experts"};
    TinyPlaces at;
    at.host = std::make_shared<ModelTimeDevice>(make_host_device(uint64_t{1} << 40), time_);
    const auto root = std::make_shared<RootComplex>(rate());
    const auto fabric = std::make_shared<Fabric>();
    for (Place p = 1; p < places_; ++p) at.devices.push_back(device(p, root, fabric));
    const auto placed = below(1000);
    const bool experts_apart = below(2) == 0;
    at.place_blocks = [=, this](ParameterTable& table) {
      if (!staged) return place_at_random(table, places_, placed);
      std::vector<Stage> stages;
      for (Place p = 1; p < places_; ++p) {
        const auto end = static_cast<int32_t>(layers * p / (places_ - 1));
        const int32_t first = stages.empty() ? -1 : stages.back().last + 1;
        stages.push_back({p, first, end - (p + 1 < places_)});
      }
      place_blocks(table, {stages, experts_apart ? std::vector{kHostPlace} : std::vector<Place>{}});
    };
    model_ = std::make_unique<TinyModel>(tiny_config(config), cpu(), DType::f32, 1, adapters, at);
    micro_batches_ = static_cast<int32_t>(1 + below(4));
    const auto group = static_cast<int64_t>(1 + below(static_cast<uint64_t>(micro_batches_)));
    PlanInput input = model_->input(kMost, kMost, micro_batches_);
    if (staged) input.places = places_of_rank(input.ops.size(), 1, places_ - 1);
    const Planner& planner = staged ? pipeline_planner() : single_planner();
    schedule_ = planner.train(input, group, below(2) == 0).schedule;
    rates_.links.emplace_back();
    for (const auto& d : at.devices) rates_.links.push_back(*d->link_rates());
    for (Place p = 0; p < places_; ++p) rates_.tables.push_back(table());
  }

  SimulatedStep simulate() {
    std::vector<BatchWork> work;
    for (const TinyBatch& batch : batches()) {
      work.push_back(work_of(batch.offsets, static_cast<double>(batch.trained())));
    }
    return Simulator(schedule_, rates_.links)
        .run(task_demands(schedule_, work, model_->spec, model_->table, rates_));
  }

  Trace execute() {
    model_->costs = rates_.tables;
    model_->clock = &time_;
    const auto executor = model_->executor(schedule_);
    std::vector<BatchShape> shapes;
    double tokens = 0, trained = 0;
    for (const TinyBatch& batch : batches()) {
      shapes.push_back(TinyModel::give(*executor, batch, static_cast<int32_t>(shapes.size())));
      tokens += static_cast<double>(batch.tokens());
      trained += static_cast<double>(batch.trained());
    }
    executor->scalar(Value::tokens) = tokens;
    executor->scalar(Value::trained_tokens) = trained;
    executor->scalar(Value::lr) = 1e-2;
    executor->scalar(Value::update_step) = 1;
    Trace trace;
    time_.start(schedule_.streams.size());
    REQUIRE(executor->run(shapes, {&trace}));
    return trace;
  }

  const Schedule& schedule() const { return schedule_; }

 private:
  uint64_t below(uint64_t n) { return random_.below(draw_++, n); }
  double rate() { return 1e5 + 1e7 * random_.uniform(draw_++); }

  std::shared_ptr<Device> device(Place place, const std::shared_ptr<RootComplex>& root,
                                 const std::shared_ptr<Fabric>& fabric) {
    VirtualOptions options;
    options.fabric = fabric;
    options.name = "virtual:" + std::to_string(place - 1);
    options.h2d = rate();
    options.d2h = rate();
    options.latency = 1e-4 * random_.uniform(draw_++);
    options.d2h_latency = 1e-4 * random_.uniform(draw_++);
    if (shares_root()) options.root = root;
    return std::make_shared<ModelTimeDevice>(make_virtual_device(options, time_), time_);
  }
  bool shares_root() { return below(2) == 0; }

  /// Times every kind. Experts take the same time for a row whichever expert gets it, since a
  /// prediction does not know which does.
  PlaceCosts table() {
    std::vector<CostEntry> entries;
    for (const TaskKind kind :
         {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch,
          TaskKind::experts, TaskKind::combine, TaskKind::head, TaskKind::norm, TaskKind::update}) {
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        CostEntry e;
        e.kind = kind;
        e.phase = phase;
        e.units = {1, 40 + static_cast<int64_t>(below(1000))};
        const double first = 1e-3 * random_.uniform(draw_++);
        e.seconds = {first, kind == TaskKind::experts ? first * static_cast<double>(e.units[1])
                                                      : first + 1e-3 * random_.uniform(draw_++)};
        if (kind == TaskKind::attention) e.pairs = {1, 300};
        entries.push_back(e);
      }
    }
    return {std::make_shared<const CostTable>(entries, std::vector<CostLink>{}), 1, Compute::f32};
  }

  std::vector<TinyBatch> batches() const {
    std::vector<TinyBatch> all;
    for (int32_t m = 0; m < micro_batches_; ++m) {
      all.emplace_back(std::vector<int32_t>{3 + 2 * m, 9, 1}, model_->spec.vocabulary,
                       static_cast<uint64_t>(m));
    }
    return all;
  }

  Random random_;
  uint64_t draw_ = 0;
  ModelTime time_;
  Place places_ = 1;
  int32_t micro_batches_ = 1;
  std::unique_ptr<TinyModel> model_;
  Schedule schedule_;
  CostRates rates_;
};

void compare(uint64_t first, uint64_t count) {
  int shared = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    DrawnRun run(seed);
    const SimulatedStep simulated = run.simulate();
    const Trace executed = run.execute();
    REQUIRE(executed.size() == simulated.trace.size());
    double last = 0;
    for (const TaskTime& time : executed) last = std::max(last, time.end);
    std::vector<TaskTime> by_task(executed.size());
    for (const TaskTime& time : executed) by_task[static_cast<size_t>(time.task)] = time;
    bool exact = true;
    for (const TaskTime& time : simulated.trace) {
      const TaskTime& real = by_task[static_cast<size_t>(time.task)];
      exact &= std::abs(real.begin - time.begin) < 1e-9 && std::abs(real.end - time.end) < 1e-9;
    }
    if (exact) continue;
    // Copies smaller than a piece do not share a link, they take it one after the other. So a copy
    // that meets another ends up to the other's time sooner or later.
    ++shared;
    CHECK(last == Catch::Approx(simulated.time_s).epsilon(0.03));
  }
  CHECK(shared < static_cast<int>(count) / 2);
}

TEST_CASE("simulator: the executor on model time ends each task when the simulator says") {
  compare(1, 60);
}

TEST_CASE("simulator: the executor, for a thousand random schedules", "[.long]") {
  compare(1000, 1000);
}

}  // namespace
}  // namespace hearth::test
