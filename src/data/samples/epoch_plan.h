// The order and packing of an epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples/row_set.h"

namespace hearth {

struct SamplerOptions {
  int64_t seq_len = 0;      // most tokens in a sequence; no row is longer
  int64_t micro_batch = 1;  // sequences in a micro-batch
  int64_t grad_accum = 1;   // micro-batches in a step
  bool packing = true;      // off: one row per sequence
  bool shuffle = true;      // off: file order
  uint64_t seed = 0;
};

/// The sequences of one epoch: lists of rows. Takes up to 12 bytes per row.
struct EpochPlan {
  std::vector<uint32_t> rows;   // every row of the epoch, sequence after sequence
  std::vector<uint32_t> ends;   // end of each sequence in `rows`; empty: one row per sequence
  std::vector<uint32_t> order;  // training order of sequences; empty: as in `rows`
  int64_t sequences() const {
    return static_cast<int64_t>(ends.empty() ? rows.size() : ends.size());
  }
  int64_t bytes() const {
    return static_cast<int64_t>((rows.size() + ends.size() + order.size()) * sizeof(uint32_t));
  }
  /// The rows of the i-th sequence in training order.
  std::span<const uint32_t> sequence(int64_t i) const {
    const size_t at = order.empty() ? static_cast<size_t>(i) : order[i];
    if (ends.empty()) return {rows.data() + at, 1};
    const size_t begin = at == 0 ? 0 : ends[at - 1];
    return {rows.data() + begin, ends[at] - begin};
  }
};

/// Shuffling draws one permutation of the rows per epoch, and after packing one of the sequences.
/// Packing is best-fit decreasing over windows of the row order: takes documents longest first, and
/// puts each into the fullest sequence with room. Never splits a document. Documents in a sequence
/// keep the row order. Without shuffling, sequences are in the order of their first documents.
EpochPlan plan_epoch(const RowSet& rows, const SamplerOptions& options, int64_t epoch);

}  // namespace hearth
