#include "cpu_kernels/row_math.h"

#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"

namespace hearth {
namespace {

constexpr int kLanes = 16;

HEARTH_INLINE double sum_of(const float (&lane)[kLanes]) {
  double sum = 0;
  for (const float x : lane) sum += x;
  return sum;
}

HEARTH_CLONES void add_block(const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

}  // namespace

HEARTH_CLONES double dot(const float* a, const float* b, int64_t n) {
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  return sum_of(lane);
}

HEARTH_CLONES double dot3(const float* a, const float* b, const float* c, int64_t n) {
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l] * c[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i] * c[i];
  return sum_of(lane);
}

void add_in_order(HostStream& stream, const float* partial, int64_t blocks, int64_t stride,
                  float* target, int64_t n) {
  constexpr int64_t kColumns = 256;
  for_blocks(stream, n, kColumns, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = 0; block < blocks; ++block) {
      add_block(partial + block * stride + begin, target + begin, end - begin);
    }
  });
}

}  // namespace hearth
