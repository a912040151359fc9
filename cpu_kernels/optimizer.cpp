#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/elements.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

// One AdamW step in the constants that its loop needs, formed in f64 and rounded once.
struct Step {
  float gradient_scale, beta1, beta2;
  float rest1, rest2;  // 1 - beta
  float decay;         // lr * weight_decay
  float rate;          // lr / c1
  float root_c2;       // 1 / sqrt(c2)
  float eps;

  explicit Step(const AdamWOptions& o)
      : gradient_scale(static_cast<float>(o.gradient_scale)),
        beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        rest1(static_cast<float>(1 - o.beta1)),
        rest2(static_cast<float>(1 - o.beta2)),
        decay(static_cast<float>(o.lr * o.weight_decay)),
        rate(static_cast<float>(o.lr / (1 - std::pow(o.beta1, static_cast<double>(o.step))))),
        root_c2(
            static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(o.step))))),
        eps(static_cast<float>(o.eps)) {}
};

// In f32, as torch's fused update: the loop waits for memory, not for arithmetic. What decay and
// step take off is summed before it meets the weight, so that the weight is rounded once.
HEARTH_CLONES void update(const Step& step, float* __restrict gradient, float* __restrict master,
                          float* __restrict moment1, float* __restrict moment2, int64_t n) {
  const Step s = step;
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    const float m = std::fma(s.beta1, moment1[i], s.rest1 * g);
    const float v = std::fma(s.beta2, moment2[i], s.rest2 * g * g);
    moment1[i] = m;
    moment2[i] = v;
    const float change = s.rate * m / std::fma(std::sqrt(v), s.root_c2, s.eps);
    master[i] -= std::fma(master[i], s.decay, change);
    gradient[i] = 0;
  }
}

HEARTH_CLONES void to_bf16_row(const float* from, bf16* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]);
}

// In f64, as squares of f32 may be too large or too small for it: several sums at a time, because
// one would wait for its additions.
HEARTH_CLONES double squares(const float* x, int64_t n) {
  constexpr int kLanes = 32;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l)
      lane[l] = std::fma(double{x[i + l]}, double{x[i + l]}, lane[l]);
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] = std::fma(double{x[i]}, double{x[i]}, lane[l]);
  double sum = 0;
  for (const double s : lane) sum += s;
  return sum;
}

constexpr int64_t kSquareBlock = int64_t{1} << 17;  // elements of a tile

int64_t square_blocks(int64_t size) { return (size + kSquareBlock - 1) / kSquareBlock; }

}  // namespace

// All blocks of all views are one set of tiles: a model has thousands of tensors.
void CpuOps::sum_squares(Stream& stream, std::span<const ConstView> x, View out) const {
  HEARTH_CHECK(has_shape(out, 1, std::ssize(x)), "sum_squares: shapes");
  Scratch::Frame frame(stream.scratch());
  int64_t blocks = 0;
  auto* end = stream.scratch().take<int64_t>(std::ssize(x));  // the first block past each view
  for (size_t i = 0; i < x.size(); ++i) {
    HEARTH_CHECK(x[i].contiguous(), "sum_squares: views are contiguous");
    end[i] = blocks += square_blocks(x[i].size());
  }
  auto* partial = stream.scratch().take<double>(blocks);
  host_stream(stream).pool().run(blocks, [&](int64_t block, int) {
    const int64_t* view_end = std::upper_bound(end, end + x.size(), block);
    const ConstView& view = x[static_cast<size_t>(view_end - end)];
    const int64_t begin = (block - *view_end + square_blocks(view.size())) * kSquareBlock;
    partial[block] = squares(view.as<float>() + begin, std::min(kSquareBlock, view.size() - begin));
  });
  int64_t block = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (; block < end[i]; ++block) sum += partial[block];
    out.as<double>()[i] = sum;
  }
}

ScratchNeed CpuOps::sum_squares_scratch(int64_t views, int64_t elements) const {
  const int64_t blocks = elements / kSquareBlock + views;
  return {align_up(static_cast<size_t>(blocks) * sizeof(double)) +
              static_cast<size_t>(views) * sizeof(int64_t) + 2 * kArenaAlignment,
          0};
}

void CpuOps::adamw(Stream& stream, const AdamWOptions& options, View gradient, View master,
                   View moment1, View moment2, View working) const {
  HEARTH_CHECK(has_shape(gradient, master.rows, master.cols) &&
                   has_shape(moment1, master.rows, master.cols) &&
                   has_shape(moment2, master.rows, master.cols) &&
                   (!working || has_shape(working, master.rows, master.cols)) && options.step >= 1,
               "adamw: shapes");
  const Step step(options);
  const ConstView last = working ? working : master;
  for_elements(
      host_stream(stream), {gradient, master, moment1, moment2, last}, [&](const Elements& e) {
        const auto at = [&](View& v) { return v.row<float>(e.row) + e.col; };
        update(step, at(gradient), at(master), at(moment1), at(moment2), e.count);
        if (!working) return;
        if (working.dtype == DType::bf16) {
          to_bf16_row(at(master), working.row<bf16>(e.row) + e.col, e.count);
        } else {
          auto* to = static_cast<std::byte*>(working.raw()) +
                     static_cast<size_t>(e.row * working.stride + e.col) * size_of(working.dtype);
          convert(DType::f32, at(master), working.dtype, to, e.count);
        }
      });
}

}  // namespace hearth
