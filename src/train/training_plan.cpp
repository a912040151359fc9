// The data of a run, and its plan.
#include <algorithm>

#include "base/file_ops.h"
#include "budget/plan_file.h"
#include "train/text_samples.h"
#include "train/training_run.h"

namespace hearth {

namespace {

RunRowsRequest training_rows(const TrainConfig& config, const RunSetup& setup, Reporter& reporter) {
  RunRowsRequest request = rows_request(config, setup, reporter);
  request.files = parse_data_files(config.data, "--data", true);
  request.val_size = config.val_size;
  return request;
}

}  // namespace

TrainingData::TrainingData(const TrainConfig& config, const RunSetup& setup, Reporter& reporter)
    : rows(training_rows(config, setup, reporter), Pool(setup.workers, setup.cores)),
      sampler(rows.training(), sampler_options(config)) {
  if (!config.eval_data.empty()) {
    RunRowsRequest request = rows_request(config, setup, reporter);
    request.files = parse_data_files(config.eval_data, "--eval-data", false);
    eval_rows.emplace(request, Pool(setup.workers, setup.cores));
    eval.emplace(eval_rows->training(), sampler_options(config));
  } else if (rows.validation().rows() > 0) {
    eval.emplace(rows.validation(), sampler_options(config));
  }
}

int64_t TrainingData::longest() const {
  const RowSet& evaluated = eval_rows ? eval_rows->training() : rows.validation();
  return std::max(rows.training().longest(), evaluated.longest());
}

uint64_t TrainingData::bytes() const {
  const int64_t bytes = rows.bytes() + sampler.bytes() + (eval_rows ? eval_rows->bytes() : 0) +
                        (eval ? eval->bytes() : 0);
  return static_cast<uint64_t>(bytes);
}

PlanRequest training_request(const TrainConfig& config, const TrainingData* data) {
  PlanRequest request;
  request.training = true;
  request.micro_batches = config.grad_accum;
  request.longest = config.seq_len;
  request.tokens = config.seq_len * config.micro_batch;
  request.bounds_basis = "--seq-len x --micro-batch";
  if (config.recompute != Recompute::automatic) {
    request.recompute = config.recompute == Recompute::blocks;
  }
  request.group = config.group;
  if (config.samples > 0) {
    request.cache_rows = std::min(config.seq_len, kMostPromptTokens) + kSampleTokens;
    request.decode_tokens = std::min(config.seq_len, kMostPromptTokens);
    request.longest = std::max(request.longest, request.cache_rows);
  }
  if (data == nullptr) {
    if (config.eval_every || config.eval_at_start || config.val_size > 0)
      request.eval_tokens = request.tokens;
    return request;
  }
  request.bounds_basis = "lengths of the data";
  request.tokens = data->sampler.max_tokens_per_micro_batch();
  request.longest = std::max(request.cache_rows, data->rows.training().longest());
  request.data_bytes = data->bytes();
  if (data->eval) {
    request.eval_tokens = data->eval->max_tokens_per_micro_batch();
    request.longest =
        std::max(request.longest, data->eval_rows ? data->eval_rows->training().longest()
                                                  : data->rows.validation().longest());
  }
  return request;
}

StepWork step_work(const TrainConfig& config, const PlanRequest& request,
                   const TrainingData* data) {
  if (data == nullptr) return full_step(request);
  return mean_step(data->rows, sampler_options(config), data->sampler);
}

std::optional<int64_t> run_steps(const TrainConfig& config, const TrainingData* data) {
  if (config.steps) return config.steps;
  if (data == nullptr) return std::nullopt;
  return data->sampler.steps_for_epochs(config.epochs);
}

std::optional<ChosenExperts> settle_experts(const TrainConfig& config, RunSetup& setup,
                                            const TrainingData& data, Reporter& reporter) {
  if (config.experts_top == 0) return std::nullopt;
  std::optional<ChosenExperts> chosen = saved_experts(config, setup.spec);
  if (!chosen) {
    reporter.note("choosing experts by a first pass over a sample of the data");
    SampleCounts sample = count_expert_tokens(setup, config, data.rows.training(), data.bytes());
    chosen = choose_experts(sample.counts, config.experts_top, sample.tokens);
  }
  setup.table = setup.checkpoint->make_table();
  set_trained(setup, config, chosen->experts);
  return chosen;
}

namespace {

/// Planned again once the machine is measured, which the process then has memory of.
PlanRequest placed(RunSetup& setup, PlanRequest request) {
  place_run(setup, request);
  return request;
}

/// None where a device cannot even be measured because it is too small for the run: its plan says
/// so, and what would fit.
std::optional<RunRates> measured(const RunSetup& setup, const PlanRequest& request) {
  try {
    return measure_run(setup, request);
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    const PlanSubject subject = subject_of(setup, measure_process(request.data_bytes));
    if (make_run_plan(subject, request).fits()) throw;
    return std::nullopt;
  }
}

}  // namespace

PlannedRun::PlannedRun(const TrainConfig& config, RunSetup opened, Reporter& reporter,
                       Planning planning)
    : setup(std::move(opened)),
      data(config.data.empty()
               ? std::nullopt
               : std::optional<TrainingData>(std::in_place, config, setup, reporter)),
      experts(planning == Planning::run ? settle_experts(config, setup, *data, reporter)
                                        : std::nullopt),
      request(placed(setup, training_request(config, rows()))),
      rates(measured(setup, request)),
      subject(subject_of(setup, measure_process(request.data_bytes))),
      plan(make_run_plan(subject, request)),
      steps(run_steps(config, rows())),
      times(predict(setup, plan, rates, step_work(config, request, rows()), steps)) {
  warn_of_positions(config, setup.spec, data ? data->longest() : 0);
  require_planned(config, plan_json(plan, setup, times));
}

void require_fit(const PlannedRun& run, const TrainConfig& config) {
  if (run.plan.fits()) return;
  throw usage_error(refusal(run.plan, changes_that_fit(run.subject, run.request, config),
                            needed_memory(run.subject, run.request, *run.plan.short_place())));
}

namespace {

/// The most states that a run saves; one more than it keeps is there for a moment.
int64_t most_states(const TrainConfig& config, std::optional<int64_t> steps) {
  const Interval& every = config.save_every;
  if (every.seconds || !steps) return config.keep + 1;
  const int64_t by_steps = every.steps && *every.steps > 0 ? *steps / *every.steps : 0;
  const bool at_end = every.steps && *every.steps > 0 && *steps % *every.steps == 0;
  return std::min(config.keep + 1, by_steps + (config.final_state && !at_end ? 1 : 0));
}

}  // namespace

uint64_t disk_needed(const RunSetup& setup, const TrainConfig& config,
                     std::optional<int64_t> steps) {
  // Of a state: manifest and directories; of a tensor, its entries in three headers.
  constexpr uint64_t kState = uint64_t{32} << 10, kEntries = 3 * 128;
  uint64_t result = 0, state = kState;
  for (const Tensor& t : setup.table.tensors()) {
    const auto size = static_cast<uint64_t>(t.size());
    if (config.method == Method::full || t.trainable) result += size * size_of(t.stored);
    if (!t.trainable) continue;
    state += size * 3 * sizeof(float) + 3 * t.name.size() + kEntries;  // master and two moments
  }
  if (config.method == Method::lora && setup.checkpoint) {  // f32, with zeros of fillers
    result = adapter_bytes(setup.table, setup.checkpoint->family(), config.adapter_layout);
  }
  const std::string states = config.out + "/state";
  const bool has_states = file_info(states).kind == FileKind::directory;
  const auto there = has_states ? static_cast<int64_t>(list_directory(states).size()) : 0;
  const int64_t most = most_states(config, steps);
  const auto more = static_cast<uint64_t>(most > 0 ? std::max<int64_t>(1, most - there) : 0);
  return result + more * state;
}

void require_disk(const RunSetup& setup, const TrainConfig& config, std::optional<int64_t> steps) {
  std::string place = config.out;  // or the nearest folder above that exists
  while (file_info(place).kind == FileKind::none) {
    const size_t slash = place.find_last_of('/');
    place = slash == std::string::npos ? "." : slash == 0 ? "/" : place.substr(0, slash);
  }
  const uint64_t need = disk_needed(setup, config, steps), have = free_bytes(place);
  if (need > have) {
    throw storage_error("--out " + quoted(config.out) + ": " + std::to_string((need >> 20) + 1) +
                        " MiB are needed for saved states and the result, " +
                        std::to_string(have >> 20) + " MiB are free");
  }
}

void require_folder_of_trace(const TrainConfig& config) {
  const size_t slash = config.trace.find_last_of('/');
  if (slash == std::string::npos || slash == 0) return;
  const std::string folder = config.trace.substr(0, slash);
  if (file_info(folder).kind == FileKind::directory) return;
  throw storage_error("--trace " + quoted(config.trace) + ": no such folder; make it first");
}

}  // namespace hearth
