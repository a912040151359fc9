#include "budget/data_report.h"

#include <fmt/core.h>

#include "base/counted.h"
#include "base/setting.h"

namespace hearth {

namespace {

double epochs_of(const DataShape& data, int64_t steps) {
  return static_cast<double>(steps) / data.steps;
}

}  // namespace

std::vector<std::string> data_lines(const DataShape& data, std::optional<int64_t> steps) {
  const RowTotals& totals = data.rows.totals;
  std::string epoch =
      fmt::format("one epoch: {} in {} ({:.1f} % of {} filled), {}", counted(data.tokens, "token"),
                  counted(data.sequences, "sequence"), 100 * data.fill, spelled(Setting::seq_len),
                  counted(fmt::format("{:.4g}", data.steps), "step"));
  if (steps)
    epoch += "; the run: " + counted(fmt::format("{:.4g}", epochs_of(data, *steps)), "epoch");
  if (data.eval_rows > 0) {
    epoch += fmt::format("; {} held back for evaluation", counted(data.eval_rows, "row"));
  }
  return {fmt::format("data: {}, {}, {} of them trained; {} cut (by {}, {} of them trained), {} "
                      "dropped, {} bad, {} without a trained token",
                      counted(totals.rows, "row"), counted(totals.tokens, "token"),
                      totals.trained_tokens, counted(totals.truncated, "row"),
                      counted(totals.truncated_tokens, "token"), data.rows.truncated_trained_tokens,
                      totals.dropped, totals.bad, totals.untrained),
          fmt::format(
              "row lengths: half have at most {}, 90 % at most {}, 99 % at most {}; the longest "
              "has {}",
              counted(data.rows.p50, "token"), data.rows.p90, data.rows.p99, data.rows.longest),
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
  json["digests"] = JsonArray(data.digests.begin(), data.digests.end());
  json["epochs"] = steps ? Json(epochs_of(data, *steps)) : Json(nullptr);
  return json;
}

}  // namespace hearth
