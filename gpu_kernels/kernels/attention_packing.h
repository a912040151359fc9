// Packed sequences in the form that libraries take: lengths and start offsets. Computed on the
// device, because only the device knows the offsets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "gpu_kernels/kernels/attention_rows.h"

namespace hearth::HEARTH_GPU {

/// Device memory. Libraries see `entries` sequences, at least the actual number; the extra
/// sequences are empty.
struct AttentionPacking {
  int64_t entries = 0;
  int32_t *queries = nullptr, *keys = nullptr;  // [entries]: rows of each sequence
  // [entries + 1]: offset of each sequence's first row, in elements.
  int64_t* query_begin = nullptr;  // of q, out and their gradients; rows are [heads * d]
  int64_t* key_begin = nullptr;    // of k, v and their gradients
  int64_t* sum_begin = nullptr;    // of log_sum
};

/// Takes uninitialised arrays.
AttentionPacking take_packing(Scratch& scratch, int64_t entries);
/// The scratch that take_packing takes.
size_t packing_bytes(int64_t entries);

/// Enqueues and returns. a.q16 and a.k16 give the strides of the rows of heads.
void pack_sequences_on(void* stream, const AttentionArguments& a, const AttentionPacking& to);

/// Rounds a size up, so that batches of similar size have one shape for libraries, which prepare
/// every new shape. Up to a multiple of 1/8 of the power of two below, at least of 128.
int64_t coarse_rows(int64_t rows);
/// Rounds up to a power of two.
int64_t coarse_count(int64_t sequences);

}  // namespace hearth::HEARTH_GPU
