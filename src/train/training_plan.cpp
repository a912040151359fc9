// The data of a run, and its plan.
#include <algorithm>

#include "base/file_ops.h"

#include "train/training_run.h"

namespace hearth {

TrainingData::TrainingData(const TrainConfig& config, const RunSetup& setup)
    : rows(read_run_rows(config, setup, config.data)),
      sampler(rows.store, sampler_options(config)) {
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
  request.group = config.group;
  return make_run_plan(setup, request);
}

void require_disk(const RunSetup& setup, const TrainConfig& config) {
  uint64_t result = 0, state = uint64_t{1} << 20;  // headers, manifest
  for (const Tensor& t : setup.table.tensors()) {
    const auto size = static_cast<uint64_t>(t.size());
    result += size * size_of(t.stored);
    if (t.trainable) state += size * 3 * sizeof(float);  // master and two moments
  }
  const std::string states = config.out + "/state";
  const bool has_states = file_info(states).kind == FileKind::directory;
  const auto there = has_states ? static_cast<int64_t>(list_directory(states).size()) : 0;
  const bool saves = config.final_state || config.save_every.steps || config.save_every.seconds;
  const auto more =
      static_cast<uint64_t>(saves ? std::max<int64_t>(1, config.keep + 1 - there) : int64_t{0});
  std::string place = config.out;  // or the nearest folder above that exists
  while (file_info(place).kind == FileKind::none) {
    const size_t slash = place.find_last_of('/');
    place = slash == std::string::npos ? "." : slash == 0 ? "/" : place.substr(0, slash);
  }
  const uint64_t need = result + more * state, have = free_bytes(place);
  if (need > have) {
    throw storage_error("--out " + quoted(config.out) + ": " + std::to_string((need >> 20) + 1) +
                        " MiB are needed for " + std::to_string(more) +
                        " saved states and the result, " + std::to_string(have >> 20) +
                        " MiB are free");
  }
}

MachineRates rates_of(const RunSetup& setup) {
  const auto device = make_host_device(uint64_t{1} << 62);
  // 16 bytes a parameter: within a quarter of what the run may use.
  const auto most = static_cast<int64_t>(setup.memory_budget / 64);
  return measure_rates(*device, setup.ops, setup.settings.compute,
                       std::min(most, trained_parameters(setup.table)), setup.workers, setup.cores);
}

StepBound full_step_bound(const RunPlan& plan, const RunSetup& setup, const MachineRates& rates) {
  const Schedule& list = plan.train->schedule;
  const auto tokens = static_cast<double>(list.tokens), longest = static_cast<double>(list.longest);
  const std::vector<BatchWork> full(static_cast<size_t>(list.micro_batches),
                                    {tokens, tokens * (longest + 1) / 2, tokens});
  return step_bound(list, full, rates, trained_parameters(setup.table));
}

}  // namespace hearth
