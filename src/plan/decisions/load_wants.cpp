#include "plan/decisions/load_wants.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

namespace {

/// Adds wants of the priority `stage` until a block does not fit.
class StageWants {
 public:
  StageWants(std::span<const size_t> bytes, size_t budget, bool with_gradient)
      : bytes_(bytes), left_(budget), with_gradient_(with_gradient) {}

  void add(BlockId block) {
    const size_t need = bytes_[static_cast<size_t>(block)];
    is_full_ = is_full_ || need > left_;
    if (is_full_) return;
    left_ -= need;
    const auto rank = static_cast<int32_t>(wants_.load.size());
    wants_.load.push_back({block, Priority::stage, rank, with_gradient_});
  }
  Wants take() { return std::move(wants_); }

 private:
  std::span<const size_t> bytes_;
  size_t left_;
  bool with_gradient_, is_full_ = false;
  Wants wants_;
};

}  // namespace

Wants stage_wants(std::span<const StageLayer> layers, std::span<const size_t> bytes, size_t budget,
                  bool with_gradient) {
  StageWants wants(bytes, budget, with_gradient);
  size_t most = 0;
  for (const StageLayer& layer : layers) {
    HEARTH_CHECK(layer.ranking.size() == layer.experts.size(), "wants: experts without a rank");
    for (const BlockId block : layer.dense) wants.add(block);
    most = std::max(most, layer.experts.size());
  }
  for (size_t rank = 0; rank < most; ++rank) {
    for (const StageLayer& layer : layers) {
      if (rank >= layer.experts.size()) continue;
      wants.add(layer.experts[static_cast<size_t>(layer.ranking[rank])]);
    }
  }
  return wants.take();
}

std::vector<BlockId> stage_drops(const Wants& asked, std::span<const Where> where) {
  std::vector<BlockId> drops;
  for (const BlockWant& want : asked.load) {
    const bool is_queued = where[static_cast<size_t>(want.block)] == Where::queued;
    if (want.priority == Priority::stage && is_queued) drops.push_back(want.block);
  }
  return drops;
}

Wants split_wants(const ExpertSplit& split, std::span<const BlockId> experts,
                  std::span<const ExpertState> states, Priority priority, bool with_gradient) {
  HEARTH_CHECK(experts.size() == split.reasons.size() && states.size() == experts.size(),
               "wants: other number of experts");
  Wants wants;
  std::vector<bool> on_device(experts.size());
  for (const int32_t expert : split.device) {
    const auto e = static_cast<size_t>(expert);
    on_device[e] = true;
    if (states[e].where == Where::here) continue;
    const auto rank = static_cast<int32_t>(wants.load.size());
    wants.load.push_back({experts[e], priority, rank, with_gradient});
  }
  for (size_t e = 0; e < experts.size(); ++e) {
    if (!on_device[e] && states[e].where == Where::queued) wants.drop.push_back(experts[e]);
  }
  return wants;
}

}  // namespace hearth
