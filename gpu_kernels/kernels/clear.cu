// Zeros in rows of any type, in the largest units that their addresses allow.
#include "gpu_kernels/kernels/clear_rows.h"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 8192;

struct alignas(16) Sixteen {
  uint64_t half[2];
};

template <class Unit>
__global__ void __launch_bounds__(kThreads)
    clear_kernel(Unit* data, int64_t rows, int64_t units, int64_t stride) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < rows * units; i += step) {
    data[i / units * stride + i % units] = Unit{};
  }
}

template <class Unit>
bool clear_in(void* stream, const ByteRows& x) {
  constexpr int64_t kSize = sizeof(Unit);
  const auto address = reinterpret_cast<uintptr_t>(x.data);
  if (address % sizeof(Unit) != 0 || x.bytes % kSize != 0 || x.stride % kSize != 0) return false;
  const int64_t units = x.bytes / kSize;
  const int64_t blocks = parts_over(x.rows * units, kThreads);
  launch(clear_kernel<Unit>, blocks < kMostBlocks ? blocks : kMostBlocks, kThreads, 0, stream,
         static_cast<Unit*>(x.data), x.rows, units, x.stride / kSize);
  return true;
}

}  // namespace

void clear_on(void* stream, const ByteRows& x) {
  if (x.rows == 0 || x.bytes == 0) return;
  clear_in<Sixteen>(stream, x) || clear_in<uint32_t>(stream, x) || clear_in<uint16_t>(stream, x) ||
      clear_in<uint8_t>(stream, x);
}

}  // namespace hearth::HEARTH_GPU
