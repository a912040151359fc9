// What the order of the rows decides: which bad ones are passed over, which long ones are cut, and
// the totals. Rows may be converted by many threads; they are taken in here one by one, in order.
#pragma once

#include "data/rows/row_converter.h"
#include "data/rows/rows.h"

namespace hearth {

class RowIntake {
 public:
  /// Reads seq_len, overflow and skip_bad_rows.
  explicit RowIntake(const RowOptions& options);

  /// Takes the next row. True: its sample, cut to seq_len, is one of the run's. False: it is left out
  /// (too long, or bad and passed over with a warning). Throws its error where it is not tolerated.
  bool take(ConvertedRow& row);

  const RowTotals& totals() const { return totals_; }

 private:
  void pass_over(const ConvertedRow& row);
  bool fit(Sample& sample);

  int64_t seq_len_;
  Overflow overflow_;
  int64_t skip_bad_rows_;
  RowTotals totals_;
};

/// Input error when there is no row or no trained token.
void require_trained_rows(const RowTotals& totals, const std::vector<std::string>& files);

}  // namespace hearth
