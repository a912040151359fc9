// Attention with one query's scores at a time; the backward recomputes them from log_sum. With
// Compute::bf16 q, k, v and dout are rounded, out is not: so the gradients of a query's scores still
// add up to zero. Softmax's weights and their gradients are not rounded either: they never leave the
// op, and how a back end rounds them is its own affair.
#include <algorithm>
#include <cmath>

#include "base/stream.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

/// The rows of one sequence. Its queries are the last of its keys' positions.
struct Sequence {
  int64_t query_begin, queries, key_begin, keys;

  Sequence(const SequenceOffsets& offsets, int64_t n)
      : query_begin(offsets.query.as<int32_t>()[n]),
        queries(offsets.query.as<int32_t>()[n + 1] - query_begin),
        key_begin(offsets.key.as<int32_t>()[n]),
        keys(offsets.key.as<int32_t>()[n + 1] - key_begin) {
    HEARTH_CHECK(queries >= 0 && queries <= keys, "attention: sequence offsets");
  }
  /// The last key that query i sees, and the first one.
  int64_t last_key(int64_t i) const { return keys - queries + i; }
  int64_t first_key(int64_t i, int64_t window) const {
    return window > 0 ? std::max<int64_t>(0, last_key(i) - window + 1) : 0;
  }
};

template <class T>
double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
  return sum;
}

/// The product of rows of operands.
template <class T>
double product(const T* a, const T* b, int64_t n, Compute compute) {
  if (compute != Compute::bf16) return dot(a, b, n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += operand(a[i], compute) * operand(b[i], compute);
  return sum;
}
/// The same where only a is an operand.
template <class T>
double rounded_dot(const T* a, const T* b, int64_t n, Compute compute) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += operand(a[i], compute) * b[i];
  return sum;
}

void check_offsets(const SequenceOffsets& offsets, const ConstView& q, const ConstView& k) {
  const int64_t n = offsets.count();
  HEARTH_CHECK(offsets.query.as<int32_t>()[n] <= q.rows && offsets.key.as<int32_t>()[n] <= k.rows,
               "attention: offsets");
}

void attention_forward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                       ConstView q, ConstView k, ConstView v, View out, View log_sum) {
  check_offsets(offsets, q, k);
  const int64_t d = shape.head_dim, group = shape.heads / shape.kv_heads;
  for_type(q.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t n = 0; n < offsets.count(); ++n) {
      const Sequence s(offsets, n);
      Scratch::Frame frame(stream.scratch());
      double* score = stream.scratch().take<double>(s.keys);
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t first = s.first_key(i, shape.window), last = s.last_key(i);
        for (int64_t h = 0; h < shape.heads; ++h) {
          const int64_t row = s.query_begin + i, column = h / group * d;
          double largest = -INFINITY;
          for (int64_t j = first; j <= last; ++j) {
            score[j] = shape.scale * product(q.row<T>(row) + h * d,
                                             k.row<T>(s.key_begin + j) + column, d, shape.compute);
            largest = std::max(largest, score[j]);
          }
          double sum = 0;
          for (int64_t j = first; j <= last; ++j) sum += std::exp(score[j] - largest);
          const double total = largest + std::log(sum);
          log_sum.row<T>(row)[h] = static_cast<T>(total);
          for (int64_t c = 0; c < d; ++c) {
            double o = 0;
            for (int64_t j = first; j <= last; ++j) {
              o += std::exp(score[j] - total) *
                   operand(v.row<T>(s.key_begin + j)[column + c], shape.compute);
            }
            out.row<T>(row)[h * d + c] = static_cast<T>(o);
          }
        }
      }
    }
  });
}

// With P = softmax(scale q k^T) and D = <dout, out> a query:
//   dS = P * (dout v^T - D), dq = scale dS k, dk = scale dS^T q, dv = P^T dout.
// dq gathers over keys, then dk and dv gather over the queries that saw the key.
void attention_backward(Stream& stream, const AttentionShape& shape, const SequenceOffsets& offsets,
                        ConstView dout, ConstView q, ConstView k, ConstView v, ConstView out,
                        ConstView log_sum, View dq, View dk, View dv) {
  check_offsets(offsets, q, k);
  const int64_t d = shape.head_dim, group = shape.heads / shape.kv_heads;
  for_type(q.dtype, [&](auto zero) {
    using T = decltype(zero);
    Scratch::Frame frame(stream.scratch());
    double* sum_a = stream.scratch().take<double>(d);
    double* sum_b = stream.scratch().take<double>(d);
    for (int64_t n = 0; n < offsets.count(); ++n) {
      const Sequence s(offsets, n);
      // P and dS of query i, key j, head h of this sequence.
      double p = 0, ds = 0;
      const auto load = [&](int64_t i, int64_t j, int64_t h) {
        const int64_t row = s.query_begin + i, key = s.key_begin + j, column = h / group * d;
        const T* gradient = dout.row<T>(row) + h * d;
        p = std::exp(shape.scale *
                         product(q.row<T>(row) + h * d, k.row<T>(key) + column, d, shape.compute) -
                     log_sum.row<T>(row)[h]);
        ds = p * (product(gradient, v.row<T>(key) + column, d, shape.compute) -
                  rounded_dot(gradient, out.row<T>(row) + h * d, d, shape.compute));
      };
      for (int64_t i = 0; i < s.queries; ++i) {
        for (int64_t h = 0; h < shape.heads; ++h) {
          std::fill_n(sum_a, d, 0.0);
          for (int64_t j = s.first_key(i, shape.window); j <= s.last_key(i); ++j) {
            load(i, j, h);
            for (int64_t c = 0; c < d; ++c) {
              sum_a[c] += shape.scale * ds *
                          operand(k.row<T>(s.key_begin + j)[h / group * d + c], shape.compute);
            }
          }
          T* target = dq.row<T>(s.query_begin + i) + h * d;
          for (int64_t c = 0; c < d; ++c) target[c] = static_cast<T>(sum_a[c]);
        }
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        for (int64_t kv = 0; kv < shape.kv_heads; ++kv) {
          std::fill_n(sum_a, d, 0.0);
          std::fill_n(sum_b, d, 0.0);
          for (int64_t i = 0; i < s.queries; ++i) {
            if (j < s.first_key(i, shape.window) || j > s.last_key(i)) continue;
            for (int64_t h = kv * group; h < (kv + 1) * group; ++h) {
              load(i, j, h);
              for (int64_t c = 0; c < d; ++c) {
                sum_a[c] += shape.scale * ds *
                            operand(q.row<T>(s.query_begin + i)[h * d + c], shape.compute);
                sum_b[c] += p * operand(dout.row<T>(s.query_begin + i)[h * d + c], shape.compute);
              }
            }
          }
          T* dk_row = dk.row<T>(s.key_begin + j) + kv * d;
          T* dv_row = dv.row<T>(s.key_begin + j) + kv * d;
          for (int64_t c = 0; c < d; ++c) dk_row[c] = static_cast<T>(sum_a[c]);
          for (int64_t c = 0; c < d; ++c) dv_row[c] = static_cast<T>(sum_b[c]);
        }
      }
    }
  });
}

}  // namespace

void reference::add_attention(OpTable& ops) {
  ops.attention_forward.add(ReferenceOps::kName, attention_forward);
  ops.attention_backward.add(ReferenceOps::kName, attention_backward);
}

}  // namespace hearth
