#include "budget/data_report.h"

#include <cstdio>

namespace hearth {

namespace {

std::string rounded(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

double epochs_of(const DataShape& data, int64_t steps) {
  return static_cast<double>(steps) / data.steps;
}

}  // namespace

std::vector<std::string> data_lines(const DataShape& data, std::optional<int64_t> steps) {
  const RowTotals& totals = data.rows.totals;
  const auto n = [](int64_t value) { return std::to_string(value); };
  std::string epoch = "an epoch: " + n(data.tokens) + " tokens in " + n(data.sequences) +
                      " sequences, " + rounded("%.1f", 100 * data.fill) +
                      " % of --seq-len filled; " + rounded("%.4g", data.steps) + " steps";
  if (steps) epoch += "; the run is " + rounded("%.4g", epochs_of(data, *steps)) + " epochs";
  if (data.eval_rows > 0) epoch += "; " + n(data.eval_rows) + " rows kept for evaluation";
  return {"data: " + n(totals.rows) + " rows, " + n(totals.tokens) + " tokens, " +
              n(totals.trained_tokens) + " trained; " + n(totals.truncated) + " rows cut (" +
              n(totals.truncated_tokens) + " tokens, " + n(data.rows.truncated_trained_tokens) +
              " of them trained), " + n(totals.dropped) + " dropped, " + n(totals.bad) + " bad, " +
              n(totals.untrained) + " without a trained token",
          "lengths: half of the rows have at most " + n(data.rows.p50) + " tokens, 90 % " +
              n(data.rows.p90) + ", 99 % " + n(data.rows.p99) + "; the longest " +
              n(data.rows.longest),
          std::move(epoch)};
}

Json data_json(const DataShape& data, std::optional<int64_t> steps) {
  const RowTotals& totals = data.rows.totals;
  Json json;
  json["rows"] = totals.rows;
  json["tokens"] = totals.tokens;
  json["trained_tokens"] = totals.trained_tokens;
  json["truncated_rows"] = totals.truncated;
  json["truncated_tokens"] = totals.truncated_tokens;
  json["truncated_trained_tokens"] = data.rows.truncated_trained_tokens;
  json["dropped_rows"] = totals.dropped;
  json["bad_rows"] = totals.bad;
  json["untrained_rows"] = totals.untrained;
  json["eval_rows"] = data.eval_rows;
  json["length_p50"] = data.rows.p50;
  json["length_p90"] = data.rows.p90;
  json["length_p99"] = data.rows.p99;
  json["length_max"] = data.rows.longest;
  json["epoch_sequences"] = data.sequences;
  json["epoch_tokens"] = data.tokens;
  json["epoch_trained_tokens"] = data.trained_tokens;
  json["epoch_steps"] = data.steps;
  json["packing_efficiency"] = data.fill;
  json["epochs"] = steps ? Json(epochs_of(data, *steps)) : Json(nullptr);
  return json;
}

}  // namespace hearth
