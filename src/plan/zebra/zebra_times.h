// What a step with zebra takes, role by role (HeterMoE, arXiv 2504.03871, section 4). Pure data.
//
// Attention ranks pass through stages, experts are between two of them:
//
//   forward     stage 0 > experts 0 > stage 1 > experts 1 > ... > stage L
//   backward    stage L > experts L-1 > stage L-1 > ... > experts 0 > stage 0
//
// Stage i < L is the attention part of layer i, with the combine of layer i - 1 before it. Stage L
// is the last combine, the final norm, the head and the losses. So L layers with experts are the
// L + 1 attention layers of the paper.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

/// Seconds for one micro-batch of each attention rank.
struct ZebraTime {
  double forward = 0;
  double backward = 0;  // with what recompute repeats
  double total() const { return forward + backward; }
};

struct ZebraLayerTimes {
  /// One expert, with its rows of all attention ranks, at an expert rank and at an attention rank.
  ZebraTime expert_there, expert_here;
  /// Rows to the experts and back, while nothing else passes their links. In backward, gradients.
  ZebraTime out, back;
};

struct ZebraTimes {
  int32_t attention_ranks = 1, expert_ranks = 1;
  int32_t experts = 1;                  // of a layer with experts
  std::vector<ZebraTime> stages;        // one more than layers
  std::vector<ZebraLayerTimes> layers;  // of a layer without experts: no times

  int32_t count() const { return static_cast<int32_t>(layers.size()); }
  /// Most experts that an expert rank has if none moved.
  int32_t most_experts() const { return (experts + expert_ranks - 1) / expert_ranks; }
};

/// By layer: how many experts each expert rank gives to the attention ranks (the paper's O). Empty:
/// none.
using ExpertShift = std::vector<int32_t>;

}  // namespace hearth
