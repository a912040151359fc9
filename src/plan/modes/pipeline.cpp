#include "modes/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

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

/// The passes of a chain of rounds, as they would run if every pass took exactly its time.
class Rounds {
 public:
  Rounds(std::span<const Round> chain, int32_t micro_batches, int32_t group)
      : chain_(chain), ends_(chain.size()) {
    Place most = 0;
    for (size_t r = 0; r < chain.size(); ++r) {
      most = std::max(most, chain[r].place);
      ends_[r].resize(static_cast<size_t>(micro_batches), kNever);
    }
    devices_.resize(static_cast<size_t>(most) + 1);
    for (int32_t begin = 0; begin < micro_batches; begin += group) {
      const int32_t end = std::min(micro_batches, begin + group);
      for (size_t r = 0; r < chain.size(); ++r) {
        std::vector<Pass>& passes = devices_[static_cast<size_t>(chain[r].place)].passes;
        for (int32_t m = begin; m < end; ++m) passes.push_back({r, m});
      }
    }
  }

  double end() const { return end_; }

  std::vector<StagePass> order() {
    std::vector<StagePass> passes;
    for (;;) {
      Device* first = nullptr;
      double earliest = kNever;
      for (Device& device : devices_) {
        const double begin = begin_of(device);
        if (begin >= earliest) continue;
        earliest = begin;
        first = &device;
      }
      if (first == nullptr) return passes;
      const Pass& pass = first->passes[first->next++];
      const Round& round = chain_[pass.round];
      passes.push_back({round.stage, pass.micro_batch, round.backward});
      first->free = end_of(pass) = earliest + round.time;
      end_ = std::max(end_, first->free);
    }
  }

 private:
  struct Pass {
    size_t round = 0;
    int32_t micro_batch = 0;
  };
  struct Device {
    std::vector<Pass> passes;
    size_t next = 0;
    double free = 0;
  };

  double& end_of(const Pass& pass) {
    return ends_[pass.round][static_cast<size_t>(pass.micro_batch)];
  }
  double begin_of(const Device& device) {
    if (device.next == device.passes.size()) return kNever;
    const Pass& pass = device.passes[device.next];
    const double before = pass.round == 0 ? 0 : end_of({pass.round - 1, pass.micro_batch});
    return std::max(device.free, before);
  }

  std::span<const Round> chain_;
  std::vector<Device> devices_;            // by place
  std::vector<std::vector<double>> ends_;  // of passes, by round and micro-batch
  double end_ = 0;
};

void extend(std::vector<Stage>& stages, Place place, int32_t layer) {
  if (stages.empty() || stages.back().place != place) stages.push_back({place, layer, layer});
  stages.back().first = std::min(stages.back().first, layer);
  stages.back().last = std::max(stages.back().last, layer);
}

/// Consecutive layers at one place, in forward order.
std::vector<Stage> stages_of(const LayerTasks& tasks, int32_t layers) {
  std::vector<Stage> stages;
  for (int32_t layer = -1; layer <= layers; ++layer) {
    extend(stages, tasks.dense_place(layer), layer);
  }
  return stages;
}

/// The same of backward, in its order: down to the embedding, or to the layer before that.
std::vector<Stage> stages_back(const LayerTasks& tasks, int32_t layers, int32_t down_to) {
  std::vector<Stage> stages;
  for (int32_t layer = layers - 1; layer >= down_to; --layer) {
    extend(stages, tasks.dense_place(layer, Phase::backward), layer);
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
        stages_(stages_of(tasks_, layers_)) {
    if (input.compute_backward.empty()) return;
    HEARTH_CHECK(recompute, "pipeline: backward is elsewhere than the activations of its forward");
    backward_ = stages_back(tasks_, layers_, embeds_last_ ? 0 : -1);
  }

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

  bool is_cut_twice() const { return !backward_.empty(); }

  /// If backward has stages of its own: those of forward, then those of backward.
  std::vector<Round> chain(const PlanInput& input) const {
    const BatchWork batch = full_batch(input.tokens, std::max<int64_t>(1, input.longest));
    std::vector<Round> chain;
    for (const bool backward : {false, true}) {
      const std::vector<Stage>& stages = backward ? backward_ : stages_;
      for (size_t s = 0; s < stages.size(); ++s) {
        Round round{static_cast<int32_t>(s), backward, stages[s].place};
        for (int32_t layer = stages[s].first; layer <= stages[s].last; ++layer) {
          const StageTime of = layer_flops(input, layer, batch);
          round.time += of.forward + (backward ? of.backward : 0);
        }
        chain.push_back(round);
      }
    }
    return chain;
  }

  /// Whether a place has several stages with layers. The embedding alone is no such stage: a tied one is
  /// at the place of the head.
  bool takes_turns() const {
    std::set<Place> seen;
    return !std::ranges::all_of(stages_, [&](const Stage& stage) {
      return stage.last < 0 || seen.insert(stage.place).second;
    });
  }

  /// Of the stages.
  std::vector<Place> places() const {
    std::vector<Place> places;
    for (const Stage& stage : stages_) places.push_back(stage.place);
    return places;
  }

  void add(const StagePass& pass) {
    const bool apart = pass.backward && is_cut_twice();
    const Stage& stage = (apart ? backward_ : stages_)[static_cast<size_t>(pass.stage)];
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
    if (m == 0 && &stage == stages_.data()) tasks_.add_first_updates(last_of_first_round());
    if (m == 0 && stage.first >= 0) tasks_.add_updates_of_stage(stage.last);
    const Stage* const next = next_at(stage);
    const double layers = stage.last - stage.first + 1, passes = micro_batches_;
    for (int32_t layer = stage.first; layer <= stage.last; ++layer) {
      if (layer < 0) {
        tasks_.add_embed(Phase::forward, m);
      } else if (layer == layers_) {
        tasks_.add_head(m);
      } else {
        tasks_.add_layer(layer, rows_of(m));
      }
      if (next == nullptr) continue;
      const double done = m + (layer - stage.first + 1) / layers;
      tasks_.add_updates_ahead(next->first, next->last, done / passes);
    }
  }
  /// The last layer before a device has a second stage.
  int32_t last_of_first_round() const {
    std::set<Place> seen;
    int32_t last = -1;
    for (const Stage& stage : stages_) {
      if (!seen.insert(stage.place).second) break;
      last = stage.last;
    }
    return last;
  }
  /// The stage that the device of this one computes behind it; null: none.
  const Stage* next_at(const Stage& stage) const {
    const Stage* const end = stages_.data() + stages_.size();
    const Stage* const found =
        std::find_if(&stage + 1, end, [&](const Stage& of) { return of.place == stage.place; });
    return found == end ? nullptr : found;
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
  std::vector<Stage> backward_;  // in the order of backward; empty: `stages_`
};

class PipelinePlanner final : public Planner {
 public:
  std::string_view name() const override { return "pipeline"; }

  TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const override {
    StageTasks tasks(input, recompute);
    double span = 0;
    const std::vector<StageTime> times = tasks.times(input);
    const auto count = static_cast<int32_t>(input.micro_batches);
    const auto in_work = static_cast<int32_t>(group);
    if (tasks.is_cut_twice()) {
      for (const StagePass& pass : rounds_order(tasks.chain(input), count, in_work, &span)) {
        tasks.add(pass);
      }
      return {tasks.finish(), group, recompute, span, input.inputs_on_host};
    }
    const std::vector<Place> places = tasks.places();
    const bool in_turn = tasks.takes_turns();
    for (const StagePass& pass : in_turn ? staged_order(times, places, count, in_work, &span)
                                         : pipeline_order(times, count, in_work, &span)) {
      tasks.add(pass);
    }
    return {tasks.finish(), group, recompute, span, input.inputs_on_host};
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

std::vector<StagePass> staged_order(std::span<const StageTime> stages,
                                    std::span<const Place> places, int32_t micro_batches,
                                    int32_t group, double* span) {
  std::vector<Round> chain;
  const auto add = [&](size_t s, bool backward) {
    const double time = backward ? stages[s].backward : stages[s].forward;
    chain.push_back({static_cast<int32_t>(s), backward, places[s], time});
  };
  for (size_t s = 0; s < stages.size(); ++s) add(s, false);
  for (size_t s = stages.size(); s-- > 0;) add(s, true);
  return rounds_order(chain, micro_batches, group, span);
}

std::vector<StagePass> rounds_order(std::span<const Round> chain, int32_t micro_batches,
                                    int32_t group, double* span) {
  Rounds rounds(chain, micro_batches, group);
  std::vector<StagePass> order = rounds.order();
  HEARTH_CHECK(std::ssize(order) == std::ssize(chain) * micro_batches,
               "pipeline: passes wait for each other");
  if (span != nullptr) *span = rounds.end();
  return order;
}

const Planner& pipeline_planner() {
  static const PipelinePlanner one;
  return one;
}

}  // namespace hearth
