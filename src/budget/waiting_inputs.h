// Whether the inputs of a device's layers had better wait on the host between forward and backward
// (PlanInput::inputs_on_host), by the bytes that cross links.
#pragma once

#include "budget/plan.h"

namespace hearth {

/// Where forward and backward read a block of the subject.
Place compute_place(const PlanSubject& subject, BlockId block);

/// Bytes of the inputs of a step that would wait: those of the layers of devices, but for the model's last,
/// with which backward begins.
uint64_t waiting_bytes(const PlanSubject& subject, const PlanRequest& request);

/// Whether fewer bytes cross links, each way, with the schedule whose inputs wait on the host: its larger
/// groups need fewer loads of weights, and fewer journeys of their accumulators.
bool waiting_spares_bytes(const PlanSubject& subject, const PlanRequest& request,
                          const CopyPolicy& policy, const TrainSchedule& on_devices,
                          const TrainSchedule& on_host);

}  // namespace hearth
