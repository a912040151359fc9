// What FaultyTask does to rope, attention, and the values around it.
#include <algorithm>
#include <cmath>

#include "support/faulty_ops.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

/// Heads of x [T, heads * width] in another order: as attention takes them if a key head served
/// every `kv_heads`-th query head, instead of neighbours; `back` undoes it.
void regroup(ConstView x, int64_t heads, int64_t kv_heads, bool back, View y) {
  const int64_t group = heads / kv_heads, width = x.cols / heads;
  const std::vector<float> from = copy_of(x);
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t kv = 0; kv < kv_heads; ++kv) {
      for (int64_t lane = 0; lane < group; ++lane) {
        const int64_t right = kv * group + lane, wrong = lane * kv_heads + kv;
        const float* head = from.data() + t * x.cols + (back ? right : wrong) * width;
        std::copy(head, head + width, y.row<float>(t) + (back ? wrong : right) * width);
      }
    }
  }
}

AttentionShape wrong_shape(const BodyContext& c, AttentionShape shape) {
  if (planted("window-one-key-wider") && shape.window > 0) ++shape.window;
  if (planted("scale-from-hidden-size")) {
    shape.scale = 1 / std::sqrt(static_cast<double>(c.spec.hidden / c.spec.heads));
  }
  return shape;
}

}  // namespace

void FaultyTask::rope(Stream& stream, View x, int64_t heads, ConstView positions, ConstView cosine,
                      ConstView sine, bool inverse) const {
  if (inverse && is(x, Value::tmp_k) && planted("rope-not-undone-for-k")) return;
  if (planted("theta-ignored")) {
    std::vector<float>& c = memory_.emplace_back(copy_of(cosine));
    std::vector<float>& s = memory_.emplace_back(copy_of(sine));
    for (int64_t p = 0; p < cosine.rows; ++p) {
      for (int64_t i = 0; i < cosine.cols; ++i) {
        const double angle =
            static_cast<double>(p) *
            std::pow(1e4, -static_cast<double>(i) / static_cast<double>(cosine.cols));
        c[static_cast<size_t>(p * cosine.cols + i)] = static_cast<float>(std::cos(angle));
        s[static_cast<size_t>(p * cosine.cols + i)] = static_cast<float>(std::sin(angle));
      }
    }
    cosine = {c.data(), DType::f32, cosine.rows, cosine.cols};
    sine = {s.data(), DType::f32, sine.rows, sine.cols};
  }
  if (!planted("rope-interleaved")) {
    return right().rope(stream, x, heads, positions, cosine, sine, inverse);
  }
  const int64_t width = x.cols / heads;
  for (int64_t t = 0; t < x.rows; ++t) {
    const int32_t p = positions.as<int32_t>()[t];
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < width / 2; ++i) {
        float *first = x.row<float>(t) + h * width + 2 * i, *second = first + 1;
        const float c = cosine.row<float>(p)[i];
        const float s = inverse ? -sine.row<float>(p)[i] : sine.row<float>(p)[i];
        const float x1 = *first, x2 = *second;
        *first = x1 * c - x2 * s;
        *second = x2 * c + x1 * s;
      }
    }
  }
}

void FaultyTask::attention_forward(Stream& stream, const AttentionShape& shape,
                                   const SequenceOffsets& offsets, ConstView q, ConstView k,
                                   ConstView v, View out, View log_sum) const {
  const AttentionShape wrong = wrong_shape(c_, shape);
  if (!planted("key-heads-repeated-wrongly")) {
    return right().attention_forward(stream, wrong, offsets, q, k, v, out, log_sum);
  }
  std::vector<float>& memory = memory_.emplace_back(copy_of(q));
  const View grouped(memory.data(), DType::f32, q.rows, q.cols);
  regroup(q, shape.heads, shape.kv_heads, false, grouped);
  right().attention_forward(stream, wrong, offsets, grouped, k, v, out, log_sum);
  regroup(out, shape.heads, shape.kv_heads, true, out);
  regroup(log_sum, shape.heads, shape.kv_heads, true, log_sum);
}

void FaultyTask::attention_backward(Stream& stream, const AttentionShape& shape,
                                    const SequenceOffsets& offsets, ConstView dout, ConstView q,
                                    ConstView k, ConstView v, ConstView out, ConstView log_sum,
                                    View dq, View dk, View dv) const {
  const AttentionShape wrong = wrong_shape(c_, shape);
  if (!planted("key-heads-repeated-wrongly")) {
    return right().attention_backward(stream, wrong, offsets, dout, q, k, v, out, log_sum, dq, dk,
                                      dv);
  }
  const auto grouped = [&](ConstView x) {
    std::vector<float>& memory = memory_.emplace_back(copy_of(x));
    const View y(memory.data(), DType::f32, x.rows, x.cols);
    regroup(x, shape.heads, shape.kv_heads, false, y);
    return y;
  };
  right().attention_backward(stream, wrong, offsets, grouped(dout), grouped(q), k, v, grouped(out),
                             grouped(log_sum), dq, dk, dv);
  regroup(dq, shape.heads, shape.kv_heads, true, dq);
}

void FaultyTask::clamp_forward(Stream& stream, ConstView x, double limit, View y) const {
  if (is(x, Value::v_unclamped) && planted("v-not-clamped")) limit = 1e30;
  right().clamp_forward(stream, x, limit, y);
  if (!planted("clip-from-below-alone")) return;
  const std::vector<float> from = copy_of(x);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t i = 0; i < y.cols; ++i) {
      y.row<float>(r)[i] =
          std::max(from[static_cast<size_t>(r * x.cols + i)], static_cast<float>(-limit));
    }
  }
}

void FaultyTask::clamp_backward(Stream& stream, ConstView dy, ConstView x, double limit,
                                View dx) const {
  if (dx.data == dy.data && planted("clip-forgotten-in-backward")) return;
  right().clamp_backward(stream, dy, x, limit, dx);
}

void FaultyTask::add(Stream& stream, ConstView a, ConstView b, View y) const {
  if (kind_ == TaskKind::attention && c_.phase == Phase::backward && is(y, Value::d_residual) &&
      planted("residual-without-gradient")) {
    return;
  }
  right().add(stream, a, b, y);
}

}  // namespace hearth::test
