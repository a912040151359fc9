// `eval`: loss of a checkpoint on data.
#include <cmath>

#include "train/session.h"
#include "train/trainer.h"

namespace hearth {

Json evaluate(const RunConfig& config, Reporter& reporter) {
  RunSetup setup = prepare_run(config);
  const RowData rows = read_run_rows(config, setup, config.data);
  const RowSet set(rows.store);
  const EvalBatches batches(set, sampler_options(config));
  PlanRequest request;
  request.longest = set.longest();
  request.eval_tokens = batches.max_tokens_per_micro_batch();
  request.data_bytes = static_cast<uint64_t>(rows.store.bytes());
  const RunPlan plan = make_run_plan(setup, request);
  require_fit(plan);
  Session session(setup, plan);
  session.read_weights();
  reporter.note("evaluating " + std::to_string(rows.totals.rows) + " rows, " +
                std::to_string(rows.totals.tokens) + " tokens");
  const EvalResult result = session.evaluate(batches);
  if (!std::isfinite(result.loss())) {
    throw numeric_error("eval: the loss is not finite");
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
  return json;
}

}  // namespace hearth
