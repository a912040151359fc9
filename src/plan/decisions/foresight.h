// What loads ahead of decisions follow: the settings of demand-priority prefetch (APTMoE, III-C).
#pragma once

#include <cstdint>

namespace hearth {

/// Which phases run. All of them belong to APTMoE; less is for ablations. No phase changes a bit.
struct LoadPhases {
  /// Loads what comes behind the task that runs: dense parts, and the experts that earlier steps
  /// foretell. Backward's loads belong to it.
  bool inter_stage = true;
  /// When a layer is divided, asks for the experts that are foretold for the next layer.
  bool inter_layer = true;
  /// Divides a layer by its real tokens, and asks for its experts at once. Without this phase the
  /// foretold tokens divide it.
  bool inter_expert = true;
  friend bool operator==(const LoadPhases&, const LoadPhases&) = default;
};

/// What foretells the tokens of experts.
enum class ForetoldBy : uint8_t {
  history,        // those of the last step, and of the micro-batches that have passed
  router,         // a model of each router, which reads what an earlier layer's router reads
  pre_attention,  // the same, which reads what enters the layer itself
  oracle          // a recorded run: the tokens that come
};

struct Foresight {
  LoadPhases phases = {};
  ForetoldBy predictor = ForetoldBy::history;
  int32_t ahead = 1;  // of `router`: so many layers with experts before its own, 1 to 4
  friend bool operator==(const Foresight&, const Foresight&) = default;
};

}  // namespace hearth
