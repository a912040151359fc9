// How long a group takes with zebra, on discrete events (plan/event_simulation.h): one attention rank
// and one expert rank, which all others of their role are like, and a stream of rows for each way.
// Pure; no clock.
#pragma once

#include "plan/zebra/zebra_order.h"
#include "plan/zebra/zebra_times.h"

namespace hearth {

/// The share of the time that another order or shift must save to be taken.
inline constexpr double kZebraGain = 1e-3;

struct ZebraRun {
  double time_s = 0;
  /// Seconds in which a rank of a role computes.
  double attention_s = 0, experts_s = 0;
  /// By position in the order: when the task computes; of experts at expert ranks.
  std::vector<double> begin, end;
};

/// `order`: one for which is_zebra_order holds, or which ends early: of a forward pass. Micro-batches
/// are alike.
ZebraRun simulate_zebra(const ZebraTimes& times, const ZebraOrder& order,
                        const ExpertShift& shift = {});

/// No order is faster: the work of a role, or the chain of one micro-batch.
double zebra_bound(const ZebraTimes& times, int32_t micro_batches, const ExpertShift& shift = {});

/// Seconds of a layer's experts, at an expert rank and at an attention rank. `moved`: experts that
/// each expert rank gives away.
ZebraTime experts_there(const ZebraTimes& times, int32_t layer, int32_t moved);
ZebraTime experts_here(const ZebraTimes& times, int32_t layer, int32_t moved);
/// Of an attention rank.
int32_t experts_taken(const ZebraTimes& times, int32_t moved);
inline int32_t moved_of(const ExpertShift& shift, int32_t layer) {
  return shift.empty() ? 0 : shift[static_cast<size_t>(layer)];
}

}  // namespace hearth
