#include "budget/waiting_inputs.h"

#include "plan/loader/slot_layout.h"

namespace hearth {

Place compute_place(const PlanSubject& subject, BlockId block) {
  return subject.compute.empty() ? subject.table.block(block).place
                                 : subject.compute[static_cast<size_t>(block)];
}

uint64_t waiting_bytes(const PlanSubject& subject, const PlanRequest& request) {
  uint64_t layers = 0;
  for (int32_t layer = 0; layer + 1 < subject.spec.layers; ++layer) {
    const BlockId attention = subject.table.find_block(BlockKind::attention, layer);
    layers += compute_place(subject, attention) >= subject.hosts;
  }
  const int64_t elements = request.micro_batches * request.tokens * subject.spec.hidden;
  return layers * static_cast<uint64_t>(elements) * size_of(subject.settings.activations);
}

bool waiting_spares_bytes(const PlanSubject& subject, const PlanRequest& request,
                          const CopyPolicy& policy, const TrainSchedule& on_devices,
                          const TrainSchedule& on_host) {
  uint64_t weights = 0, gradients = 0;
  const ParameterTable& table = subject.table;
  for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
    if (compute_place(subject, b) == table.block(b).place) continue;
    weights += slot_layout(table, b, Cargo::weights, policy).slot_bytes();
    gradients += slot_layout(table, b, Cargo::gradient, policy).slot_bytes();
  }
  const auto groups = [&](const TrainSchedule& train) {
    const int64_t of_shard = request.micro_batches / request.shards.count();
    return request.shards.count() * ((of_shard + train.group - 1) / train.group);
  };
  const int64_t spared = groups(on_devices) - groups(on_host);
  if (spared <= 0) return false;
  // Each group loads weights for forward and for backward, and accumulators come and go. An input goes
  // and comes.
  return static_cast<uint64_t>(spared) * (weights + gradients) > waiting_bytes(subject, request);
}

}  // namespace hearth
