#include "data/rows/row_intake.h"

#include "base/log.h"

namespace hearth {

RowIntake::RowIntake(const RowOptions& options)
    : seq_len_(options.seq_len),
      overflow_(options.overflow),
      skip_bad_rows_(options.skip_bad_rows) {}

bool RowIntake::take(ConvertedRow& row) {
  if (row.error) {
    pass_over(row);
    return false;
  }
  if (!fit(row.sample)) return false;
  const int64_t trained = count_trained(row.sample.labels);
  ++totals_.rows;
  totals_.tokens += static_cast<int64_t>(row.sample.ids.size());
  totals_.trained_tokens += trained;
  totals_.untrained += trained == 0 ? 1 : 0;
  return true;
}

// Only what is wrong with this row is tolerated.
void RowIntake::pass_over(const ConvertedRow& row) {
  try {
    std::rethrow_exception(row.error);
  } catch (const BadRow& error) {
    if (totals_.bad >= skip_bad_rows_) throw;
    ++totals_.bad;
    log_warning("bad row passed over: " + std::string(error.what()));
  }
}

// Applies seq_len; false when the row is left out.
bool RowIntake::fit(Sample& sample) {
  const auto length = static_cast<int64_t>(sample.ids.size());
  if (seq_len_ == 0 || length <= seq_len_) return true;
  switch (overflow_) {
    case Overflow::error:
      throw input_error(sample.file + ":" + std::to_string(sample.line) + ": " +
                        std::to_string(length) + " ids, more than --seq-len " +
                        std::to_string(seq_len_));
    case Overflow::drop: ++totals_.dropped; return false;
    case Overflow::truncate: break;
  }
  ++totals_.truncated;
  totals_.truncated_tokens += length - seq_len_;
  sample.ids.resize(seq_len_);
  sample.labels.resize(seq_len_);
  if (!sample.spans.empty()) sample.spans.resize(seq_len_);
  return true;
}

void require_trained_rows(const RowTotals& totals, const std::vector<std::string>& files) {
  const std::string what =
      files.size() == 1 ? files[0] : std::to_string(files.size()) + " data files";
  if (totals.rows == 0) {
    throw input_error(what + ": no rows" +
                      (totals.dropped > 0 ? " (all " + std::to_string(totals.dropped) +
                                                " are longer than --seq-len and were dropped)"
                                          : ""));
  }
  if (totals.trained_tokens == 0) throw input_error(what + ": no trained token in any row");
}

}  // namespace hearth
