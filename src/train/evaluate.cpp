// `eval`: loss of a checkpoint on data.
#include <cmath>

#include "base/counted.h"
#include "base/setting.h"
#include "budget/plan_fit.h"
#include "setup/row_requests.h"
#include "train/evaluate.h"
#include "train/session.h"

namespace hearth {

Json evaluate(const RunConfig& config, Reporter& reporter) {
  const std::shared_ptr<const OpenedModel> opened = open_model(config);
  RunRowsRequest rows_wanted = rows_request(config, opened->spec, reporter);
  rows_wanted.files = find_data_files(config.data, spelled(Setting::data), false);
  const RunRows rows(rows_wanted, Pool(opened->workers, opened->cores));
  EvalBatches batches(rows.training(), sampler_options(config));
  PlanRequest request;
  request.longest = rows.training().longest();
  request.eval_tokens = batches.max_tokens_per_micro_batch();
  request.data_bytes = static_cast<uint64_t>(rows.bytes() + batches.bytes());
  const PlacedModel model = place_model(untrained_model(opened, config), request);
  require_fit(model, request);
  log_lines(opened->said);
  warn_of_positions(config, opened->spec, rows.training().longest());
  Session session(model);
  session.read_weights();
  reporter.note("evaluating " + counted(rows.training().rows(), "row") + ", " +
                counted(rows.training().tokens(), "token"));
  const EvalResult result = session.evaluate(batches);
  if (!std::isfinite(result.loss())) {
    throw numeric_error("eval: the loss is not finite; check the weights of the model");
  }
  Json json;
  json["loss"] = result.loss();
  json["perplexity"] = std::exp(result.loss());
  json["tokens"] = result.tokens;
  json["trained_tokens"] = result.trained_tokens;
  json["aux_loss"] = result.aux_loss;
  JsonArray load;
  for (const double x : result.expert_load) load.push_back(x);
  json["expert_load"] = std::move(load);
  json["tokens_by_expert"] = counts_by_expert(result.expert_tokens);
  return json;
}

}  // namespace hearth
