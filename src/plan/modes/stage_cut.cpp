#include "modes/stage_cut.h"

#include <algorithm>
#include <limits>

namespace hearth {

namespace {

/// How bad a stage, or a cut by its worst stage, is: memory over the room first, then time.
struct Badness {
  double over = 0;  // bytes above the room, as a share of it
  double seconds = 0;
  friend bool operator<(const Badness& a, const Badness& b) {
    return a.over != b.over ? a.over < b.over : a.seconds < b.seconds;
  }
};
Badness worse(const Badness& a, const Badness& b) {
  return {std::max(a.over, b.over), std::max(a.seconds, b.seconds)};
}

class Cutter {
 public:
  explicit Cutter(const StageCutInput& input)
      : input_(input), units_(input.bytes.size()), devices_(input.devices.size()) {}

  std::optional<std::vector<Stage>> best() const {
    if (devices_ == 0 || devices_ > units_) return std::nullopt;
    // cut[d][u]: of the first u units on the first d + 1 devices; where the last stage begins.
    std::vector<std::vector<Cut>> cuts(devices_, std::vector<Cut>(units_ + 1));
    for (size_t d = 0; d < devices_; ++d) {
      for (size_t end = d + 1; end <= units_; ++end) {
        Cut& best = cuts[d][end];
        for (size_t begin = d == 0 ? 0 : d; begin < (d == 0 ? 1 : end); ++begin) {
          if (d > 0 && !cuts[d - 1][begin].possible) continue;
          Badness of = stage(d, begin, end);
          if (d > 0) of = worse(of, cuts[d - 1][begin].badness);
          if (!best.possible || of < best.badness) best = {true, begin, of};
        }
      }
    }
    std::vector<Stage> stages(devices_);
    size_t end = units_;
    for (size_t d = devices_; d-- > 0;) {
      const size_t begin = cuts[d][end].begin;
      stages[d] = {input_.devices[d], static_cast<int32_t>(begin) - 1,
                   static_cast<int32_t>(end) - 2};
      end = begin;
    }
    return stages;
  }

 private:
  struct Cut {
    bool possible = false;
    size_t begin = 0;
    Badness badness;
  };

  Badness stage(size_t device, size_t begin, size_t end) const {
    double seconds = 0;
    uint64_t bytes = input_.unit_bytes[device] * (end - begin);
    for (size_t u = begin; u < end; ++u) {
      seconds += input_.seconds[device][u];
      bytes += input_.bytes[u];
    }
    const uint64_t room = input_.room[device];
    if (bytes <= room) return {0, seconds};
    return {static_cast<double>(bytes - room) / (static_cast<double>(room) + 1), seconds};
  }

  const StageCutInput& input_;
  const size_t units_, devices_;
};

}  // namespace

std::optional<std::vector<Stage>> cut_stages(const StageCutInput& input) {
  return Cutter(input).best();
}

StageTime layer_flops(const PlanInput& input, int32_t layer, const BatchWork& batch) {
  const auto layers = static_cast<int32_t>(input.spec.layers);
  const auto flops = [&](TaskKind kind, Phase phase) {
    const TaskShape shape{input.spec,   input.settings, input.table,
                          Pass::train,  phase,          std::clamp(layer, 0, layers),
                          input.tokens, input.longest};
    return flops_of(body_of(kind).work(shape), batch);
  };
  if (layer < 0) return {0, 0};
  if (layer == layers) return {flops(TaskKind::head, Phase::forward), 0};
  StageTime time{0, 0};
  const auto add = [&](TaskKind kind) {
    time.forward += flops(kind, Phase::forward);
    time.backward += flops(kind, Phase::backward);
  };
  add(TaskKind::attention);
  if (input.spec.has_experts(layer)) add(TaskKind::experts);
  if (!input.spec.has_experts(layer) || input.spec.has_shared_expert(layer)) add(TaskKind::mlp);
  return time;
}

}  // namespace hearth
