// All rows of a run: read, cut to length, weighed, split.
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
  double val_size = 0;  // below 1 a share of the rows, else their number; 0: none
  uint64_t seed = 0;    // of the split
  RowCacheOptions cache;
  ReadingHooks hooks;
};

/// What the rows of a run are like.
struct RowSummary {
  RowTotals totals;                                // rows as they are given; each once
  int64_t truncated_trained_tokens = 0;            // labels that counted and were cut off
  int64_t p50 = 0, p90 = 0, p99 = 0, longest = 0;  // ids of a row before it is cut or left out
};

/// Reads everything when it is made. Input errors: no row, no trained token, a row longer than
/// seq_len where that is an error. Usage error: a split that leaves nothing to train on.
///
/// Of the rows that are left after `drop`, val_size are kept for evaluation (a share is rounded up):
/// a choice by the seed among the rows of all files, before packing and weights. It is a function of
/// the data and these options alone, so every start makes the same one.
class RunRows {
 public:
  RunRows(const RunRowsRequest& request, const Pool& pool);
  RunRows(const RunRows&) = delete;
  RunRows& operator=(const RunRows&) = delete;

  const RowSet& training() const { return training_; }
  const RowSet& validation() const { return validation_; }  // empty without val_size
  const RowSummary& summary() const { return summary_; }
  /// Path and XXH3 of every file, in order.
  const std::vector<std::pair<std::string, Digest>>& digests() const { return digests_; }
  /// Of the rows kept for evaluation: another split has another digest.
  Digest split() const { return split_; }
  /// Bytes that the rows take in memory.
  int64_t bytes() const;

 private:
  void take(const RunRowsRequest& request, const DataFile& file, FileTokens tokens);
  void divide(const RunRowsRequest& request);
  void measure_lengths();

  std::deque<TokenStore> stores_;  // stay where they are
  RowSet training_, validation_;
  RowSummary summary_;
  std::vector<std::pair<std::string, Digest>> digests_;
  Digest split_;
};

}  // namespace hearth
