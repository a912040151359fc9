// All rows of a run: reads the files, cuts rows to length, applies weights and --val-size.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "data/samples/data_files.h"
#include "data/samples/file_tokens.h"
#include "data/samples/row_set.h"

namespace hearth {

struct RunRowsRequest {
  std::vector<DataFile> files;
  RowOptions rows;      // with seq_len and overflow
  double val_size = 0;  // below 1: share of the rows; else their number; 0: none
  uint64_t seed = 0;    // for the split
  RowCacheOptions cache;
  ReadingHooks hooks;
};

/// Statistics of the rows of a run.
struct RowSummary {
  RowTotals totals;                                // rows after cutting; counts each row once
  int64_t truncated_trained_tokens = 0;            // trained targets that were cut off
  int64_t p50 = 0, p90 = 0, p99 = 0, longest = 0;  // ids per row before it is cut or dropped
};

/// The constructor reads everything. Input errors: no row, no trained token, a row longer than
/// seq_len with --overflow error. Usage error: a split that leaves no row to train on.
///
/// Draws val_size of the rows for evaluation (a share rounds up), among the rows of all files that
/// `drop` leaves, before packing and weights. The draw depends only on the data and these options,
/// so every start repeats it.
class RunRows {
 public:
  RunRows(const RunRowsRequest& request, const Pool& pool);
  RunRows(const RunRows&) = delete;
  RunRows& operator=(const RunRows&) = delete;

  const RowSet& training() const { return training_; }
  const RowSet& validation() const { return validation_; }  // empty without val_size
  const RowSummary& summary() const { return summary_; }
  /// Path and XXH3 digest of every file, in order.
  const std::vector<std::pair<std::string, Digest>>& digests() const { return digests_; }
  /// Digest of the choice of rows for evaluation.
  Digest split() const { return split_; }
  /// Bytes that the rows take in memory.
  int64_t bytes() const;

 private:
  void take(const RunRowsRequest& request, const DataFile& file, FileTokens tokens);
  void divide(const RunRowsRequest& request);
  void measure_lengths();

  std::deque<TokenStore> stores_;  // a deque, because row sets point to them
  RowSet training_, validation_;
  RowSummary summary_;
  std::vector<std::pair<std::string, Digest>> digests_;
  Digest split_;
};

}  // namespace hearth
