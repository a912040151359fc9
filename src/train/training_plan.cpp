// The data of a run, and its plan.
#include <algorithm>

#include "train/training_run.h"

namespace hearth {

TrainingData::TrainingData(const TrainConfig& config, const RunSetup& setup)
    : rows(read_run_rows(config, setup, config.data)), sampler(rows.store, sampler_options(config)) {
  if (!config.eval_data.empty()) eval_rows = read_run_rows(config, setup, config.eval_data);
}

std::optional<EvalBatches> TrainingData::eval(const TrainConfig& config) const {
  if (!eval_rows) return std::nullopt;
  return EvalBatches(eval_rows->store, sampler_options(config));
}

std::vector<std::pair<std::string, Digest>> TrainingData::digests() const {
  auto all = rows.digests;
  if (eval_rows) all.insert(all.end(), eval_rows->digests.begin(), eval_rows->digests.end());
  return all;
}

RunPlan plan_training(const TrainConfig& config, const RunSetup& setup, const TrainingData& data) {
  PlanRequest request;
  request.training = true;
  request.micro_batches = config.grad_accum;
  request.tokens = data.sampler.max_tokens_per_micro_batch();
  request.longest = data.rows.store.longest();
  request.data_bytes = static_cast<uint64_t>(data.rows.store.bytes());
  if (const auto eval = data.eval(config)) {
    request.eval_tokens = eval->max_tokens_per_micro_batch();
    request.longest = std::max(request.longest, data.eval_rows->store.longest());
    request.data_bytes += static_cast<uint64_t>(data.eval_rows->store.bytes());
  }
  if (config.recompute != Recompute::automatic) {
    request.recompute = config.recompute == Recompute::blocks;
  }
  return make_run_plan(setup, request);
}

MachineRates rates_of(const RunSetup& setup) {
  const auto device = make_host_device(uint64_t{1} << 62);
  return measure_rates(*device, setup.ops, setup.settings.compute,
                       trained_parameters(setup.table), setup.workers, setup.cores);
}

StepBound full_step_bound(const RunPlan& plan, const RunSetup& setup, const MachineRates& rates) {
  const Schedule& list = plan.train->schedule;
  const auto tokens = static_cast<double>(list.tokens), longest = static_cast<double>(list.longest);
  const std::vector<BatchWork> full(static_cast<size_t>(list.micro_batches),
                                    {tokens, tokens * (longest + 1) / 2, tokens});
  return step_bound(list, full, rates, trained_parameters(setup.table));
}

}  // namespace hearth
