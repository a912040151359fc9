#include "train/training_data.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/setting.h"
#include "data/rows/sample_view.h"
#include "setup/row_requests.h"
#include "train/text_samples.h"

namespace hearth {

namespace {

RunRowsRequest training_rows(const TrainConfig& config, const ModelSpec& spec, Reporter& reporter) {
  RunRowsRequest request = rows_request(config, spec, reporter);
  request.files = find_data_files(config.data, spelled(Setting::data), true);
  request.val_size = config.val_size;
  return request;
}

}  // namespace

TrainingData::TrainingData(const TrainConfig& given, const OpenedModel& opened, Reporter& reporter)
    : rows(training_rows(given, opened.spec, reporter), Pool(opened.workers, opened.cores)),
      choices(data_choices(given, rows.training())),
      sampler(rows.training(), sampler_options(with_choices(given, choices))) {
  const TrainConfig config = with_choices(given, choices);
  if (!config.eval_data.empty()) {
    RunRowsRequest request = rows_request(config, opened.spec, reporter);
    request.files = find_data_files(config.eval_data, spelled(Setting::eval_data), false);
    eval_rows.emplace(request, Pool(opened.workers, opened.cores));
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
  request.shards = {static_cast<int32_t>(config.shards()),
                    static_cast<int32_t>(config.ranks()),
                    0,
                    config.process_ranks == 1,
                    static_cast<int32_t>(config.shared_experts()),
                    static_cast<int32_t>(config.attention_ranks)};
  if (config.parallel == "hybrid-ep") request.shards.wire = config.expert_wire();
  request.shards.direct = config.direct && config.ranks() > 1 && config.attention_ranks == 0 &&
                          !request.shards.wire.compresses();
  request.rank_hosts = config.rank_hosts;
  request.rank_links = config.rank_links;
  request.cpu_share = config.cpu_share;
  request.micro_batches = config.grad_accum / config.computing_ranks();
  request.longest = config.seq_len;
  request.tokens = config.seq_len * config.micro_batch;
  request.bounds_basis = spelled(Setting::seq_len) + " x " + spelled(Setting::micro_batch);
  if (config.recompute != Recompute::automatic) {
    request.recompute = config.recompute == Recompute::blocks;
  }
  if (config.policy == "roundpipe") {
    if (config.recompute == Recompute::none) {
      throw usage_error(
          "{}: roundpipe computes a layer's backward on another device than its forward, so it "
          "recomputes; leave {} out",
          spelled(Setting::recompute, "none"), spelled(Setting::recompute));
    }
    request.recompute = true;
  }
  request.group = config.group;
  request.inputs_on_host = config.inputs_on_host;
  request.stage_ends = config.stage_ends;
  request.backward_ends = config.backward_ends;
  if (config.samples > 0) {
    request.cache_rows = std::min(config.seq_len, kMostPromptTokens) + kSampleTokens;
    request.decode_tokens = std::min(config.seq_len, kMostPromptTokens);
    request.longest = std::max(request.longest, request.cache_rows);
  }
  if (data == nullptr) {
    if (config.eval_every.is_set() || config.eval_at_start || config.val_size > 0)
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

std::optional<int64_t> steps_of_run(const TrainConfig& config, const TrainingData* data) {
  if (config.steps) return config.steps;
  if (data == nullptr) return std::nullopt;
  return data->sampler.steps_for_epochs(config.epochs);
}

namespace {

/// Without data: shorter sequences are no advice.
constexpr int64_t kUsefulLength = 64;

/// By row: the least length that leaves it a trained token, ascending.
std::vector<int64_t> least_lengths(const RowSet& rows, Overflow overflow) {
  std::vector<int64_t> lengths;
  std::vector<int32_t> ids, labels;
  for (int64_t row = 0; row < std::min(rows.rows(), kRowsSeen); ++row) {
    if (rows.trained(row) == 0) continue;
    if (overflow != Overflow::truncate) {
      lengths.push_back(rows.length(row));
      continue;
    }
    ids.clear();
    labels.clear();
    rows.read(row, ids, labels);
    size_t first = 1;  // the first token is predicted from nothing
    while (first < labels.size() && labels[first] == kIgnoredLabel) ++first;
    lengths.push_back(static_cast<int64_t>(first) + 1);
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

int64_t shortest_useful(const TrainConfig& config, const TrainingData* data) {
  if (data == nullptr) return std::min(config.seq_len, kUsefulLength);
  if (config.overflow == Overflow::error) return config.seq_len;
  const std::vector<int64_t> lengths = least_lengths(data->rows.training(), config.overflow);
  int64_t shortest = lengths.empty() ? 1 : lengths[lengths.size() / 2];
  const RowSet& evaluated = data->eval_rows ? data->eval_rows->training() : data->rows.validation();
  const std::vector<int64_t> of_eval = least_lengths(evaluated, config.overflow);
  if (!of_eval.empty()) shortest = std::max(shortest, of_eval.front());
  return std::min(config.seq_len, shortest);
}

}  // namespace hearth
