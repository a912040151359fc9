// Which rows belong together, and which keys a query sees: what all of attention's kernels share.
#pragma once

#include "gpu_kernels/kernels/attention_rows.h"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {

constexpr int kMostShared = 99 << 10;   // bytes of a block on sm_89, the least of all
constexpr float kLowestScore = -1e30f;  // below every score, yet finite

__device__ inline float* head_row(const HeadMatrix& x, int64_t row, int64_t column) {
  return x.data + row * x.stride + column;
}

/// The last sequence that begins at or before `row`, and does not end there.
__device__ inline int sequence_of(const int32_t* offsets, int count, int row) {
  int low = 0, high = count;  // the first n with offsets[n + 1] > row
  while (low < high) {
    const int middle = (low + high) / 2;
    if (offsets[middle + 1] > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// How much of a tile of scores is seen.
enum class Seen { none, some, all };

/// One sequence: its rows, and which of its keys a query sees.
struct AttentionSequence {
  int query_begin, queries, key_begin, keys;
  __device__ AttentionSequence(const AttentionArguments& a, int n)
      : query_begin(a.query_offsets[n]),
        queries(a.query_offsets[n + 1] - query_begin),
        key_begin(a.key_offsets[n]),
        keys(a.key_offsets[n + 1] - key_begin) {}
  __device__ int last_key(int query) const { return keys - queries + query; }
  __device__ int first_key(int query, int window) const {
    const int last = last_key(query);
    return window > 0 && last >= window ? last - window + 1 : 0;
  }
  /// Whether a query whose last key is `last` sees `key`.
  __device__ static bool sees(int last, int key, int window) {
    return key <= last && (window == 0 || key > last - window);
  }
  /// Of the scores of `rows` queries from `query` on with `columns` keys from `key` on.
  __device__ Seen seen(int query, int rows, int key, int columns, int window) const {
    const int first = last_key(query), last = last_key(query + rows - 1);
    if (!sees(last, key, 0) || (window > 0 && key + columns <= first - window + 1)) {
      return Seen::none;
    }
    return key + columns <= first + 1 && sees(last, key, window) ? Seen::all : Seen::some;
  }
};

/// Calls f(sequence, first, count) for the rows [begin, end) of queries or of keys, as `offsets` are
/// of one or the other: each sequence's part of them, from its row `first` on, one after the other.
template <class F>
__device__ inline void for_sequences(const AttentionArguments& a, const int32_t* offsets, int begin,
                                     int end, const F& f) {
  for (int n = sequence_of(offsets, a.sequences, begin); n < a.sequences; ++n) {
    if (offsets[n] >= end) break;
    const int first = max(begin, offsets[n]), past = min(end, offsets[n + 1]);
    if (first >= past) continue;
    __syncthreads();  // the part before is done with shared memory
    f(AttentionSequence(a, n), first - offsets[n], past - first);
  }
}

}  // namespace hearth::HEARTH_GPU
