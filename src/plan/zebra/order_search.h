// Orders of a step with zebra beside that of Theorem 1, whose preconditions may fail. Pure; no clock.
#pragma once

#include "plan/zebra/zebra_simulation.h"

namespace hearth {

struct FoundOrder {
  ZebraOrder order;
  double time_s = 0;       // simulated
  double theorem_1_s = 0;  // of the order of Theorem 1
  bool is_other() const { return time_s < theorem_1_s; }
};

/// Orders that the search goes on with at each task.
inline constexpr int32_t kOrdersKept = 16;

/// The order of Theorem 1, unless a beam search finds one that takes less simulated time by a thousandth
/// or more. In all of these, experts at attention ranks follow the attention of their layer.
FoundOrder find_zebra_order(const ZebraTimes& times, int32_t micro_batches,
                            const ExpertShift& shift = {}, int32_t width = kOrdersKept);

}  // namespace hearth
