// Packed sequences in the form in which libraries take them: lengths, and where in memory each sequence
// begins. Made on the device, as the offsets are known there alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "gpu_kernels/kernels/attention_rows.h"

namespace hearth::HEARTH_GPU {

/// Device memory. A library is told `entries` sequences, as many as there are or more; those that are
/// not there have no rows.
struct AttentionPacking {
  int64_t entries = 0;
  int32_t *queries = nullptr, *keys = nullptr;  // [entries]: rows
  // [entries + 1]: elements from the first row to the sequence's
  int64_t* query_begin = nullptr;  // of q, out and their gradients, rows of heads side by side
  int64_t* key_begin = nullptr;    // of k, v and their gradients
  int64_t* sum_begin = nullptr;    // of log_sum
};

/// Uninitialised.
AttentionPacking take_packing(Scratch& scratch, int64_t entries);
/// The scratch that they take.
size_t packing_bytes(int64_t entries);

/// Enqueues and returns. a.q16 and a.k16 give the strides of the rows of heads.
void pack_sequences_on(void* stream, const AttentionArguments& a, const AttentionPacking& to);

/// Numbers that sizes are rounded up to, so that batches of similar sizes are one shape to a library,
/// which prepares each shape anew: multiples of an eighth of the power of two below, at least of 128.
int64_t coarse_rows(int64_t rows);
/// A power of two.
int64_t coarse_count(int64_t sequences);

}  // namespace hearth::HEARTH_GPU
