#include "train/expert_sample.h"

#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/stop.h"
#include "budget/plan_fit.h"
#include "setup/row_requests.h"
#include "train/session.h"
#include "train/state_to_resume.h"

namespace hearth {

namespace {

/// The first micro-batches of a run.
class SampleBatches {
 public:
  SampleBatches(const RowSet& rows, const SamplerOptions& options) : sampler_(rows, options) {}

  std::optional<MicroBatch> next() {
    if (at_ == step_.size()) {
      const SamplerCursor cursor = sampler_.cursor();
      if (cursor.epoch > 0 || cursor.sequence >= sampler_.sequences_in_epoch(0)) return {};
      step_ = sampler_.next_step();
      at_ = 0;
    }
    if (tokens_ >= kExpertSampleTokens) return {};
    tokens_ += step_[at_].tokens;
    return std::move(step_[at_++]);
  }

 private:
  Sampler sampler_;
  std::vector<MicroBatch> step_;
  size_t at_ = 0;
  int64_t tokens_ = 0;
};

/// nullopt if it does not have as many numbers as the layer has experts.
std::optional<std::vector<double>> layer_counts(const Json& layer, size_t experts) {
  if (!layer.is_array() || layer.as_array().size() != experts) return std::nullopt;
  std::vector<double> counts;
  for (const Json& tokens : layer.as_array()) {
    if (!tokens.is_number()) return std::nullopt;
    counts.push_back(tokens.as_double());
  }
  return counts;
}

struct PlannedPass {
  PlanRequest request;
  PlacedModel base;
};

PlannedPass planned_pass(const std::shared_ptr<const OpenedModel>& opened,
                         const TrainConfig& config, const RowSet& rows, uint64_t data_bytes) {
  PlanRequest request;
  request.longest = rows.longest();
  request.eval_tokens = Sampler(rows, sampler_options(config)).max_tokens_per_micro_batch();
  request.data_bytes = data_bytes;
  PlacedModel base = place_model(untrained_model(opened, config), request);
  return {request, std::move(base)};
}

SampleCounts counted_by(const PlacedModel& base, const TrainConfig& config, const RowSet& rows) {
  SampleBatches batches(rows, sampler_options(config));
  Session session(base);
  session.read_weights();
  EvalResult result =
      session.evaluate([&] { return batches.next(); }, [] { return stop_signal() != 0; });
  leave_if_stopped("the experts were chosen");
  return {std::move(result.expert_tokens), result.tokens};
}

}  // namespace

SampleCounts count_expert_tokens(const std::shared_ptr<const OpenedModel>& opened,
                                 const TrainConfig& config, const RowSet& rows,
                                 uint64_t data_bytes) {
  const PlannedPass pass = planned_pass(opened, config, rows, data_bytes);
  require_fit(pass.base, pass.request);
  return counted_by(pass.base, config, rows);
}

std::optional<SampleCounts> count_if_it_fits(const std::shared_ptr<const OpenedModel>& opened,
                                             const TrainConfig& config, const RowSet& rows,
                                             uint64_t data_bytes) {
  const PlannedPass pass = planned_pass(opened, config, rows, data_bytes);
  if (!pass.base.plan.fits()) return std::nullopt;
  return counted_by(pass.base, config, rows);
}

std::string popularity_of(const SampleCounts& sample) {
  return "experts as popular as in a sample of " + counted(sample.tokens, "token");
}

Json sample_record(const SampleCounts& sample) {
  JsonArray layers;
  for (const std::vector<double>& counts : sample.counts) {
    JsonArray layer;
    for (const double tokens : counts) layer.push_back(static_cast<int64_t>(tokens));
    layers.push_back(std::move(layer));
  }
  return JsonObject{{"tokens", sample.tokens}, {"experts", std::move(layers)}};
}

std::optional<SampleCounts> saved_sample(const TrainConfig& config, const ModelSpec& spec) {
  const std::optional<SavedState> state = state_to_resume(config);
  const Json* record = state ? state->extra.find("sample") : nullptr;
  const Json* tokens = record != nullptr && record->is_object() ? record->find("tokens") : nullptr;
  const Json* layers = tokens != nullptr ? record->find("experts") : nullptr;
  if (layers == nullptr || !tokens->is_signed() || !layers->is_array() ||
      std::ssize(layers->as_array()) != spec.layers) {
    return std::nullopt;
  }
  SampleCounts sample{{}, tokens->as_int()};
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    const auto experts = static_cast<size_t>(spec.has_experts(layer) ? spec.experts : 0);
    auto counts = layer_counts(layers->as_array()[static_cast<size_t>(layer)], experts);
    if (!counts) return std::nullopt;
    sample.counts.push_back(std::move(*counts));
  }
  return sample;
}

}  // namespace hearth
