#include <algorithm>
#include <cmath>

#include "base/dtype.h"
#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/elements.h"
#include "cpu_kernels/vector_math.h"
#include "ops/adamw_step.h"

namespace hearth {
namespace {

// In f32, as torch's fused update: the loop waits for memory, not for arithmetic. What decay and
// step take off is summed before it meets the weight, so that the weight is rounded once.
HEARTH_CLONES void update(const AdamWStep& step, float* __restrict gradient,
                          float* __restrict master, float* __restrict moment1,
                          float* __restrict moment2, int64_t n) {
  const AdamWStep s = step;
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

// All blocks of all views are one set of tiles: a model has thousands of tensors.
void sum_squares(Stream& stream, std::span<const ConstView> x, View out) {
  Scratch::Frame frame(stream.scratch());
  int64_t blocks = 0;
  auto* end = stream.scratch().take<int64_t>(std::ssize(x));  // the first block past each view
  for (size_t i = 0; i < x.size(); ++i) {
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

ScratchNeed sum_squares_scratch(int64_t views, int64_t elements) {
  const int64_t blocks = elements / kSquareBlock + views;
  return {align_up(static_cast<size_t>(blocks) * sizeof(double)) +
              static_cast<size_t>(views) * sizeof(int64_t) + 2 * kArenaAlignment,
          0};
}

void adamw(Stream& stream, const AdamWOptions& options, std::span<const AdamWTensors> tensors) {
  const AdamWStep step = adamw_step(options);
  for (const AdamWTensors& t : tensors) {
    const std::initializer_list<ConstView> all = {t.gradient, t.master, t.moment1, t.moment2,
                                                  t.working ? t.working : t.master};
    const auto of = [](const View& v, int64_t at) { return v.as<float>() + at; };
    for_elements(host_stream(stream), all, [&](const Elements& e) {
      update(step, of(t.gradient, e.col), of(t.master, e.col), of(t.moment1, e.col),
             of(t.moment2, e.col), e.count);
      if (!t.working) return;
      if (t.working.dtype == DType::bf16) {
        to_bf16_row(of(t.master, e.col), t.working.as<bf16>() + e.col, e.count);
      } else {
        auto* to = static_cast<std::byte*>(t.working.raw()) +
                   static_cast<size_t>(e.col) * size_of(t.working.dtype);
        convert(DType::f32, of(t.master, e.col), t.working.dtype, to, e.count);
      }
    });
  }
}

}  // namespace

void cpu::add_optimizer(OpTable& ops) {
  ops.sum_squares.add(CpuOps::kName, sum_squares);
  ops.sum_squares_scratch.add(sum_squares_scratch);
  ops.adamw.add(CpuOps::kName, adamw);
}

}  // namespace hearth
