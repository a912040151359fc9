// Shared by attention's forward and backward. Scores are transposed: rows are keys, columns
// ("lanes") are queries. So maxima, sums and corrections run over whole rows, and the next product
// takes scores as its right operand. The heads of a group share keys, so their queries are lanes of
// one tile: lane f of a sequence is query f / group of head f % group.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu_kernels/product.h"
#include "ops/op_set.h"

namespace hearth {

constexpr int64_t kLanes = 64;  // lanes of a tile, a lane per query and head of a group
constexpr int64_t kKeys = 112;  // keys in a block
constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Floats of a tile's queries as a right operand, plain or in pairs.
constexpr int64_t transposed_floats(int64_t d) {
  return std::max(d * kLanes, small_pairs_floats(d, kLanes));
}

/// Scores of a block of keys: [kKeys, kLanes].
using Scores = float*;

/// The rows of one sequence.
struct AttentionSequence {
  int64_t query_begin, queries, key_begin, keys;

  AttentionSequence(const SequenceOffsets& offsets, int64_t n);
  /// The last and the first key that query i sees.
  int64_t last_key(int64_t i) const { return keys - queries + i; }
  int64_t first_key(int64_t i, int64_t window) const {
    return window > 0 && last_key(i) >= window ? last_key(i) - window + 1 : 0;
  }
};

/// Up to kLanes lanes of one sequence and one key-value head.
struct LaneBlock {
  const AttentionShape& shape;
  AttentionSequence sequence;
  int64_t kv_head;
  int64_t begin, count;  // lanes of the sequence

  int64_t group() const { return shape.heads / shape.kv_heads; }
  /// `count` rounded up to whole vectors. Lanes past the end hold zeros.
  int64_t padded() const { return (count + 15) / 16 * 16; }
  int64_t query(int64_t lane) const { return (begin + lane) / group(); }
  int64_t row(int64_t lane) const { return sequence.query_begin + query(lane); }
  int64_t head(int64_t lane) const { return kv_head * group() + (begin + lane) % group(); }
  int64_t first_key() const { return sequence.first_key(query(0), shape.window); }
  int64_t last_key() const { return sequence.last_key(query(count - 1)); }
  /// Keys [key, key + n) of the sequence, columns of this head.
  ConstView key_block(const ConstView& kv, int64_t key, int64_t n) const;
};

/// How an attention computes its products: in pairs of bf16 if it computes in bf16 and the machine has
/// such products, else in f32. In f32 queries are scaled, which costs least. In pairs it is the scores,
/// so that q is rounded as it is.
class AttentionProducts {
 public:
  explicit AttentionProducts(const AttentionShape& shape)
      : pairs_(shape.compute == Compute::bf16 && has_small_pairs(shape.head_dim)),
        scale_(static_cast<float>(shape.scale)) {}

  bool pairs() const { return pairs_; }
  float query_scale() const { return pairs_ ? 1.0f : scale_; }
  float score_scale() const { return pairs_ ? scale_ : 1.0f; }

  /// The transpose of `rows` [n, d], n <= kLanes, made in `space`, which has transposed_floats(d).
  SmallRight transposed(const float* rows, int64_t d, int64_t n, float* space) const;
  /// `m` [k, n], with `ld` floats per row. `space` is for pairs, small_pairs_floats(k, n).
  SmallRight plain(const float* m, int64_t k, int64_t n, int64_t ld, float* space) const;

 private:
  const bool pairs_;
  const float scale_;
};

/// Copies the lanes of x, times `scale`, to `rows` [kLanes, d]; zeros past the end.
void gather_lanes(const LaneBlock& lanes, const ConstView& x, float scale, float* rows);
/// Transposes [kLanes, d] to [d, kLanes].
void transpose_lanes(const float* rows, int64_t d, float* transposed);
/// Writes [d, kLanes] to the lanes of x, each times its scale; `rows` is scratch.
void scatter_lanes(const LaneBlock& lanes, const float* transposed, const float* lane_scale,
                   float* rows, View x);

/// Sets scores of keys [key, key + n) that a lane may not see to kMasked.
void mask_scores(const LaneBlock& lanes, int64_t key, int64_t n, Scores scores);

/// Upper bound of the worker scratch that either direction takes.
size_t attention_tile_scratch(const AttentionShape& shape);

/// Calls f(n) for each sequence n that overlaps [begin, end), with `offsets` multiplied by
/// `factor`.
template <class F>
void for_sequences(const ConstView& offsets, int64_t factor, int64_t begin, int64_t end,
                   const F& f) {
  const auto* o = offsets.as<int32_t>();
  const auto past = [&](int64_t value, int32_t offset) { return value < offset * factor; };
  for (int64_t n = std::upper_bound(o, o + offsets.cols, begin, past) - o - 1;
       n < offsets.cols - 1 && o[n] * factor < end; ++n) {
    if (o[n + 1] > o[n]) f(n);
  }
}

/// Checks the offsets against the numbers of rows.
void check_offsets(const SequenceOffsets& offsets, const ConstView& q, const ConstView& k);

}  // namespace hearth
