#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

HEARTH_CLONES void rotate(float* first, float* second, const float* cosine, const float* sine,
                          float sign, int64_t half) {
  HEARTH_SAME_OR_APART
  for (int64_t i = 0; i < half; ++i) {
    const float c = cosine[i], s = sign * sine[i], x1 = first[i], x2 = second[i];
    first[i] = x1 * c - x2 * s;
    second[i] = x2 * c + x1 * s;
  }
}

void rope(Stream& stream, View x, int64_t heads, ConstView positions, ConstView cosine,
          ConstView sine, bool inverse) {
  const int64_t half = cosine.cols;
  for_blocks(host_stream(stream), x.rows, row_block(x.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t position = positions.as<int32_t>()[t];
      HEARTH_CHECK(position >= 0 && position < cosine.rows, "rope: position");
      for (int64_t h = 0; h < heads; ++h) {
        float* head = x.row<float>(t) + h * 2 * half;
        rotate(head, head + half, cosine.row<float>(position), sine.row<float>(position),
               inverse ? -1.0f : 1.0f, half);
      }
    }
  });
}

}  // namespace

void cpu::add_rope(OpTable& ops) { ops.rope.add(CpuOps::kName, rope); }

}  // namespace hearth
