#include "plan/bound.h"

#include <algorithm>

namespace hearth {

double BatchWork::pairs(int64_t window) const {
  double sum = 0;
  for (const Documents& d : documents) {
    const double w = window > 0 ? std::min(static_cast<double>(window), d.length) : d.length;
    sum += d.count * (w * (w + 1) / 2 + (d.length - w) * w);
  }
  return sum;
}

BatchWork work_of(std::span<const int32_t> offsets, double trained) {
  BatchWork work;
  work.trained = trained;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const double n = offsets[i + 1] - offsets[i];
    work.tokens += n;
    work.documents.push_back({n, 1});
  }
  return work;
}

BatchWork full_batch(int64_t tokens, int64_t longest) {
  const auto n = static_cast<double>(tokens), length = static_cast<double>(longest);
  return {n, n, {{length, n / length}}};
}

double flops_of(const Work& work, const BatchWork& batch) {
  double flops = work.per_token * batch.tokens + work.per_trained * batch.trained;
  if (work.per_pair > 0) flops += work.per_pair * batch.pairs(work.window);
  return flops;
}

BatchWork work_of(RowRange rows, std::span<const BatchWork> batches) {
  BatchWork sum;
  for (int32_t m = rows.begin; !rows.none() && m < rows.end; ++m) {
    const BatchWork& batch = batches[static_cast<size_t>(m)];
    sum.tokens += batch.tokens;
    sum.trained += batch.trained;
    sum.documents.insert(sum.documents.end(), batch.documents.begin(), batch.documents.end());
  }
  return sum;
}

StepBound step_bound(const Schedule& schedule, std::span<const BatchWork> batches,
                     const MachineRates& rates, int64_t updated) {
  StepBound bound;
  for (const Task& task : schedule.tasks) {
    if (task.rows.none() || task.phase == Phase::recompute) continue;
    bound.flops += flops_of(task.work, work_of(task.rows, batches));
  }
  bound.products_s = bound.flops / rates.flops_per_s;
  bound.update_s = static_cast<double>(updated) / rates.update_params_per_s;
  return bound;
}

}  // namespace hearth
