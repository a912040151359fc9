// Applies --skip-bad-rows and --overflow, and counts totals. Threads may convert rows in any order;
// this takes the rows one by one, in file order.
#pragma once

#include "data/rows/row_converter.h"
#include "data/rows/rows.h"

namespace hearth {

/// Whether --overflow drops a row of `length` ids.
bool is_dropped(const RowOptions& options, int64_t length);
/// Input error naming FILE:LINE if the row is too long and --overflow says `error`.
void check_length(const RowOptions& options, int64_t length, const std::string& file, int64_t line);

/// Skips one more bad row: increments `bad` and warns. Throws `message` as an input error if that
/// exceeds --skip-bad-rows.
void pass_over_bad_row(const RowOptions& options, int64_t& bad, const std::string& message);

class RowIntake {
 public:
  /// Uses only seq_len, overflow and skip_bad_rows.
  explicit RowIntake(const RowOptions& options) : options_(options) {}

  /// Takes the next row and cuts its sample to seq_len. False if the row is dropped: too long, or
  /// bad and skipped with a warning. Throws the row's error if it may not be skipped.
  bool take(ConvertedRow& row);

  const RowTotals& totals() const { return totals_; }

 private:
  RowOptions options_;
  RowTotals totals_;
};

/// Input error if there is no row or no trained token.
void require_trained_rows(const RowTotals& totals, const std::vector<std::string>& files);

}  // namespace hearth
