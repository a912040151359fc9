#include "modes/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "modes/layer_tasks.h"
#include "modes/stage_cut.h"
#include "plan/bound.h"

namespace hearth {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The passes as they would run if every pass took exactly its time.
class Wavefront {
 public:
  Wavefront(std::span<const StageTime> stages, int32_t micro_batches, int32_t group)
      : times_(stages), micro_batches_(micro_batches), group_(group), stages_(stages.size()) {
    for (Progress& stage : stages_) {
      stage.forward_end.resize(static_cast<size_t>(micro_batches), kNever);
      stage.backward_end.resize(static_cast<size_t>(micro_batches), kNever);
    }
  }

  /// When the last pass ends: a backward of the first stage.
  double end() const { return stages_.front().free; }

  std::vector<StagePass> order() {
    std::vector<StagePass> passes;
    while (std::optional<StagePass> next = first_to_begin()) {
      run(*next);
      passes.push_back(*next);
    }
    return passes;
  }

 private:
  struct Progress {
    double free = 0;  // when the stage has ended what it began
    int32_t forwards = 0, backwards = 0;
    std::vector<double> forward_end, backward_end;  // by micro-batch
  };

  size_t last() const { return stages_.size() - 1; }

  double forward_begin(size_t s) const {
    const Progress& stage = stages_[s];
    const auto m = static_cast<size_t>(stage.forwards);
    if (stage.forwards == micro_batches_ || stage.forwards - stage.backwards >= group_) {
      return kNever;
    }
    return std::max(stage.free, s == 0 ? 0 : stages_[s - 1].forward_end[m]);
  }
  double backward_begin(size_t s) const {
    const Progress& stage = stages_[s];
    const auto m = static_cast<size_t>(stage.backwards);
    if (stage.backwards == stage.forwards) return kNever;
    return std::max(stage.free,
                    s == last() ? stage.forward_end[m] : stages_[s + 1].backward_end[m]);
  }

  /// Of equals the earlier stage, and backward before forward.
  std::optional<StagePass> first_to_begin() const {
    std::optional<StagePass> first;
    double earliest = kNever;
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const bool backward : {true, false}) {
        const double begin = backward ? backward_begin(s) : forward_begin(s);
        if (begin >= earliest) continue;
        earliest = begin;
        first = {static_cast<int32_t>(s), backward ? stages_[s].backwards : stages_[s].forwards,
                 backward};
      }
    }
    return first;
  }

  void run(const StagePass& pass) {
    const auto s = static_cast<size_t>(pass.stage), m = static_cast<size_t>(pass.micro_batch);
    Progress& stage = stages_[s];
    const double begin = pass.backward ? backward_begin(s) : forward_begin(s);
    stage.free = begin + (pass.backward ? times_[s].backward : times_[s].forward);
    (pass.backward ? stage.backward_end : stage.forward_end)[m] = stage.free;
    ++(pass.backward ? stage.backwards : stage.forwards);
  }

  std::span<const StageTime> times_;
  const int32_t micro_batches_, group_;
  std::vector<Progress> stages_;
};

/// Consecutive layers at one place.
std::vector<Stage> stages_of(const LayerTasks& tasks, int64_t layers) {
  std::vector<Stage> stages;
  for (int32_t layer = -1; layer <= layers; ++layer) {
    const Place place = tasks.dense_place(layer);
    if (stages.empty() || stages.back().place != place) stages.push_back({place, layer, layer});
    stages.back().last = layer;
  }
  return stages;
}

/// Adds the passes of a step stage by stage.
class StageTasks {
 public:
  StageTasks(const PlanInput& input, bool recompute)
      : recompute_(recompute),
        embeds_last_(embedding_waits_for_heads(input)),
        layers_(static_cast<int32_t>(input.spec.layers)),
        micro_batches_(static_cast<int32_t>(input.micro_batches)),
        tasks_(input, Pass::train),
        stages_(stages_of(tasks_, input.spec.layers)) {}

  /// By the floating-point operations of full micro-batches.
  std::vector<StageTime> times(const PlanInput& input) const {
    const BatchWork batch = full_batch(input.tokens, std::max<int64_t>(1, input.longest));
    std::vector<StageTime> times(stages_.size(), StageTime{0, 0});
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (int32_t layer = stages_[s].first; layer <= stages_[s].last; ++layer) {
        const StageTime of = layer_flops(input, layer, batch);
        times[s].forward += of.forward;
        times[s].backward += of.backward + (recompute_ ? of.forward : 0);
      }
    }
    return times;
  }

  void add(const StagePass& pass) {
    const Stage& stage = stages_[static_cast<size_t>(pass.stage)];
    (pass.backward ? add_backward(stage, pass.micro_batch) : add_forward(stage, pass.micro_batch));
  }

  Schedule finish() {
    for (int32_t m = 0; embeds_last_ && m < micro_batches_; ++m) {
      tasks_.add_embed(Phase::backward, m);
    }
    tasks_.add_updates();
    return tasks_.finish();
  }

 private:
  void add_forward(const Stage& stage, int32_t m) {
    for (int32_t layer = stage.first; layer <= stage.last; ++layer) {
      if (layer < 0) {
        tasks_.add_embed(Phase::forward, m);
      } else if (layer == layers_) {
        tasks_.add_head(m);
      } else {
        tasks_.add_layer(layer, rows_of(m));
      }
    }
  }
  void add_backward(const Stage& stage, int32_t m) {
    for (int32_t layer = std::min(stage.last, layers_ - 1); layer >= std::max(stage.first, 0);
         --layer) {
      tasks_.add_layer_backward(layer, rows_of(m), recompute_);
    }
    if (stage.first < 0 && !embeds_last_) tasks_.add_embed(Phase::backward, m);
  }

  const bool recompute_, embeds_last_;
  const int32_t layers_, micro_batches_;
  LayerTasks tasks_;
  std::vector<Stage> stages_;
};

class PipelinePlanner final : public Planner {
 public:
  std::string_view name() const override { return "pipeline"; }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    StageTasks tasks(input, recompute);
    double span = 0;
    for (const StagePass& pass :
         pipeline_order(tasks.times(input), static_cast<int32_t>(input.micro_batches),
                        static_cast<int32_t>(group), &span)) {
      tasks.add(pass);
    }
    return {tasks.finish(), group, recompute, span};
  }

  Schedule eval(const PlanInput& input) const override {
    return forward_schedule(input, Pass::eval, 0);
  }
  Schedule decode(const PlanInput& input, int64_t cache_rows) const override {
    return forward_schedule(input, Pass::decode, cache_rows);
  }
};

}  // namespace

std::vector<StagePass> pipeline_order(std::span<const StageTime> stages, int32_t micro_batches,
                                      int32_t group, double* span) {
  Wavefront wavefront(stages, micro_batches, group);
  std::vector<StagePass> order = wavefront.order();
  if (span != nullptr) *span = wavefront.end();
  return order;
}

const Planner& pipeline_planner() {
  static const PipelinePlanner one;
  return one;
}

}  // namespace hearth
