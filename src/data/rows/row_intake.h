// What the order of the rows decides: which bad ones are passed over, which long ones are cut, and
// the totals. Rows may be converted by many threads; they are taken in here one by one, in order.
#pragma once

#include "data/rows/row_converter.h"
#include "data/rows/rows.h"

namespace hearth {

/// Whether --overflow leaves out a row of `length` ids.
bool is_dropped(const RowOptions& options, int64_t length);
/// Input error naming FILE:LINE where --overflow makes the row one.
void check_length(const RowOptions& options, int64_t length, const std::string& file, int64_t line);

/// --skip-bad-rows for one more bad row, `bad` having been passed over: counts it, with a warning; an
/// input error, which is `message`, where it is one too many.
void pass_over_bad_row(const RowOptions& options, int64_t& bad, const std::string& message);

class RowIntake {
 public:
  /// Of the options, seq_len, overflow and skip_bad_rows count.
  explicit RowIntake(const RowOptions& options) : options_(options) {}

  /// Takes the next row. True: its sample, cut to seq_len, is one of the run's. False: it is left out
  /// (too long, or bad and passed over with a warning). Throws its error where it is not tolerated.
  bool take(ConvertedRow& row);

  const RowTotals& totals() const { return totals_; }

 private:
  RowOptions options_;
  RowTotals totals_;
};

/// Input error when there is no row or no trained token.
void require_trained_rows(const RowTotals& totals, const std::vector<std::string>& files);

}  // namespace hearth
