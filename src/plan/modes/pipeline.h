// The planner `pipeline`: stages of layers on several devices.
#pragma once

#include <span>
#include <vector>

#include "modes/planner.h"

namespace hearth {

/// Each device computes its stage for one micro-batch after the other, while the devices beside it
/// compute others. Backward goes first: a stage begins a forward only if no backward is ready, or if
/// it can begin earlier. `group` bounds the micro-batches that a stage has begun and not ended, and
/// with them its activations. Every stage takes micro-batches in order, in both directions, so
/// gradients are summed in the order of one device.
const Planner& pipeline_planner();

/// One pass of a micro-batch through a stage.
struct StagePass {
  int32_t stage = 0;
  int32_t micro_batch = 0;
  bool backward = false;
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// Seconds (or any unit) of a micro-batch in a stage.
struct StageTime {
  double forward = 1;
  double backward = 1;
};

/// The passes of a step in the order in which they begin, as described above. Each pass comes after
/// what it needs. Pure: equal arguments give equal orders. Sets `span` to the end of the last pass.
std::vector<StagePass> pipeline_order(std::span<const StageTime> stages, int32_t micro_batches,
                                      int32_t group, double* span = nullptr);

/// The same where devices have several stages each, whose weights come and go: stage s is at the place
/// places[s]. Every place takes all micro-batches of a group through one stage before it turns to
/// the next, forward and then backward, so that weights are loaded once a direction.
std::vector<StagePass> staged_order(std::span<const StageTime> stages,
                                    std::span<const Place> places, int32_t micro_batches,
                                    int32_t group, double* span = nullptr);

/// What a device does in one go: a stage in one direction.
struct Round {
  int32_t stage = 0;  // counted in its direction
  bool backward = false;
  Place place = kHostPlace;
  double time = 0;  // of a micro-batch
};

/// The passes where each micro-batch goes through a chain of rounds, wherever these are. Every place
/// takes all micro-batches of a group through one round before it turns to its next. A place that
/// waits for one round does not begin a later one.
std::vector<StagePass> rounds_order(std::span<const Round> chain, int32_t micro_batches,
                                    int32_t group, double* span = nullptr);

}  // namespace hearth
