#include "cpu_kernels/attention_tiles.h"

#include "cpu_kernels/packing.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

HEARTH_CLONES void scale_row(const float* from, float scale, float* to, int64_t n) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < n; ++i) to[i] = scale * from[i];
}

}  // namespace

AttentionSequence::AttentionSequence(const SequenceOffsets& offsets, int64_t n)
    : query_begin(offsets.query.as<int32_t>()[n]),
      queries(offsets.query.as<int32_t>()[n + 1] - query_begin),
      key_begin(offsets.key.as<int32_t>()[n]),
      keys(offsets.key.as<int32_t>()[n + 1] - key_begin) {
  HEARTH_CHECK(queries >= 0 && queries <= keys, "attention: sequence offsets");
}

ConstView LaneBlock::key_block(const ConstView& kv, int64_t key, int64_t n) const {
  return columns(kv.slice(sequence.key_begin + key, n), {kv_head * shape.head_dim, shape.head_dim});
}

void gather_lanes(const LaneBlock& lanes, const ConstView& x, float scale, float* rows) {
  const int64_t d = lanes.shape.head_dim;
  // Rows lie apart, where no hardware fetches ahead.
  constexpr int64_t kAhead = 8;
  for (int64_t l = 0; l < lanes.count; ++l) {
    if (l + kAhead < lanes.count) {
      const float* next = x.row<float>(lanes.row(l + kAhead)) + lanes.head(l + kAhead) * d;
      for (int64_t i = 0; i < d; i += 16) __builtin_prefetch(next + i);
    }
    scale_row(x.row<float>(lanes.row(l)) + lanes.head(l) * d, scale, rows + l * d, d);
  }
  std::fill(rows + lanes.count * d, rows + kLanes * d, 0.0f);
}

void transpose_lanes(const float* rows, int64_t d, float* transposed) {
  transpose(rows, d, kLanes, d, transposed, kLanes);
}

SmallRight AttentionProducts::transposed(const float* rows, int64_t d, int64_t n,
                                         float* space) const {
  if (pairs_) return right_in_pairs(Operand(ConstView(rows, DType::f32, n, d), true), space);
  transpose_lanes(rows, d, space);
  return right_in_place(space, d, n, kLanes);
}

SmallRight AttentionProducts::plain(const float* m, int64_t k, int64_t n, int64_t ld,
                                    float* space) const {
  if (pairs_) return right_in_pairs(ConstView(m, DType::f32, k, n, ld), space);
  return right_in_place(m, k, n, ld);
}

void scatter_lanes(const LaneBlock& lanes, const float* transposed, const float* lane_scale,
                   float* rows, View x) {
  const int64_t d = lanes.shape.head_dim;
  transpose(transposed, kLanes, d, lanes.count, rows, d);
  for (int64_t l = 0; l < lanes.count; ++l) {
    scale_row(rows + l * d, lane_scale[l], x.row<float>(lanes.row(l)) + lanes.head(l) * d, d);
  }
}

void mask_scores(const LaneBlock& lanes, int64_t key, int64_t n, Scores scores) {
  const AttentionSequence& s = lanes.sequence;
  const int64_t window = lanes.shape.window;
  const bool all_seen = key + n - 1 <= s.last_key(lanes.query(0)) &&
                        key >= s.first_key(lanes.query(lanes.count - 1), window);
  if (all_seen) return;
  // Lanes are in the order of their queries: those before the first that sees a key, and those
  // whose window begins behind it.
  const auto lane_of = [&](int64_t query) {
    return std::clamp<int64_t>(query * lanes.group() - lanes.begin, 0, lanes.count);
  };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = key + i - (s.keys - s.queries);  // the query of the key's own position
    float* row = scores + i * kLanes;
    std::fill_n(row, lane_of(first), kMasked);
    if (window > 0) std::fill(row + lane_of(first + window), row + lanes.count, kMasked);
  }
}

size_t attention_tile_scratch(const AttentionShape& shape) {
  const auto d = static_cast<size_t>(shape.head_dim);
  const auto packed = static_cast<size_t>(2 * small_pairs_floats(kLanes, shape.head_dim) +
                                          small_pairs_floats(kKeys, kLanes));
  const auto transposed = static_cast<size_t>(2 * transposed_floats(shape.head_dim));
  return sizeof(float) * (4 * d * kLanes + transposed + 2 * kKeys * kLanes + 4 * kLanes +
                          kLeftFloats + packed) +
         16 * kArenaAlignment;
}

void check_offsets(const SequenceOffsets& offsets, const ConstView& q, const ConstView& k) {
  const int64_t n = offsets.count();
  HEARTH_CHECK(offsets.query.as<int32_t>()[n] <= q.rows && offsets.key.as<int32_t>()[n] <= k.rows,
               "attention: offsets");
}

}  // namespace hearth
