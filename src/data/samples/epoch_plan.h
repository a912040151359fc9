// The order of an epoch and its packing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples/row_set.h"

namespace hearth {

struct SamplerOptions {
  int64_t seq_len = 0;      // most tokens in a packed sequence; no row is longer
  int64_t micro_batch = 1;  // sequences in a micro-batch
  int64_t grad_accum = 1;   // micro-batches in a step
  bool packing = true;      // off: one row a sequence
  bool shuffle = true;      // off: file order
  uint64_t seed = 0;
};

/// The sequences of one epoch: lists of rows. Up to 12 bytes a row.
struct EpochPlan {
  std::vector<uint32_t> rows;   // every row of the epoch, sequence after sequence
  std::vector<uint32_t> ends;   // of the sequences in rows; empty: one row a sequence
  std::vector<uint32_t> order;  // in which sequences are trained; empty: as they lie
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

/// Shuffling draws one permutation of the rows, an epoch, and after packing one of the sequences.
/// Packing is best-fit decreasing over windows of the row order: documents, the longest first, go
/// to the fullest sequence that still has room; none is split. Documents of a sequence, and without
/// shuffling the sequences themselves, keep the row order (of their first document).
EpochPlan plan_epoch(const RowSet& rows, const SamplerOptions& options, int64_t epoch);

}  // namespace hearth
