#include "plan/bound.h"

namespace hearth {

BatchWork work_of(std::span<const int32_t> offsets, double trained) {
  BatchWork work;
  work.trained = trained;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const double n = offsets[i + 1] - offsets[i];
    work.tokens += n;
    work.pairs += n * (n + 1) / 2;
  }
  return work;
}

StepBound step_bound(const Schedule& schedule, std::span<const BatchWork> batches,
                     const MachineRates& rates, int64_t updated) {
  StepBound bound;
  for (const Task& task : schedule.tasks) {
    if (task.micro_batch < 0 || task.phase == Phase::recompute) continue;
    const BatchWork& batch = batches[static_cast<size_t>(task.micro_batch)];
    bound.flops += task.work.per_token * batch.tokens + task.work.per_pair * batch.pairs +
                   task.work.per_trained * batch.trained;
  }
  bound.products_s = bound.flops / rates.flops_per_s;
  bound.update_s = static_cast<double>(updated) / rates.update_params_per_s;
  return bound;
}

}  // namespace hearth
