#include "gpu_kernels/kernels/dropout.cuh"
#include "gpu_kernels/kernels/rows.cuh"
#include "gpu_kernels/kernels/token_rows.h"

namespace hearth::HEARTH_GPU {
namespace {

template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    embedding_kernel(const __grid_constant__ EmbeddingArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows) return;
  const int64_t id = a.ids[place.row];
  const bool known = id >= 0 && id < a.vocabulary;
  float* const to = a.out.data + place.row * a.out.stride;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4] = {NAN, NAN, NAN, NAN};
    if (known) read4(a.table.data, a.table.stored, id * a.table.stride + c, n, a.quads, x);
    write4(to + c, n, a.quads, x);
  });
}

constexpr int kGradientThreads = 128;
constexpr int kGradientQuads = 4;                                            // of a thread
constexpr int64_t kGradientColumns = 4 * kGradientQuads * kGradientThreads;  // of a block

// The block of the first token of an id adds the rows of all tokens with it, in order; the others
// have nothing to do. Every warp looks for them, which costs tokens^2 / 64 reads of 128 bytes at most:
// less than a row for each token.
//
// Four blocks of a multiprocessor are all that is asked for: the compiler may then spend registers on
// reads that are under way.
__global__ void __launch_bounds__(kGradientThreads, 4)
    embedding_gradient_kernel(const __grid_constant__ EmbeddingArguments a) {
  const int64_t token = blockIdx.x;
  const int id = a.ids[token], lane = static_cast<int>(threadIdx.x) % 32;
  if (id < 0 || id >= a.vocabulary || id == a.padding) return;
  for (int64_t t = 0; t < token; t += 32) {
    if (__any_sync(0xffffffffu, t + lane < token && a.ids[t + lane] == id)) return;
  }
  const int64_t first = int64_t{blockIdx.y} * kGradientColumns;
  const int64_t end = first + kGradientColumns < a.cols ? first + kGradientColumns : a.cols;
  float* const to = a.table_gradient.data + id * a.table_gradient.stride;
  // This thread's columns; their sums stay here, so that rows are read without waiting for a write.
  float sums[kGradientQuads][4];
  const auto column = [&](int q) {
    return first + int64_t{4} * (q * kGradientThreads + static_cast<int>(threadIdx.x));
  };
  const auto for_quads = [&](const auto& f) {
#pragma unroll
    for (int q = 0; q < kGradientQuads; ++q) {
      const int64_t c = column(q);
      if (c < end) f(c, end - c < 4 ? static_cast<int>(end - c) : 4, sums[q]);
    }
  };
  const bool whole = a.quads && column(kGradientQuads - 1) + 4 <= end;
  for_quads([&](int64_t c, int n, float(&sum)[4]) { read4(to + c, n, a.quads, sum); });
  for (int64_t t = token; t < a.rows; t += 32) {
    unsigned same = __ballot_sync(0xffffffffu, t + lane < a.rows && a.ids[t + lane] == id);
    for (; same != 0; same &= same - 1) {
      const float* const from =
          a.dout.data + (t + __ffs(static_cast<int>(same)) - 1) * a.dout.stride;
      if (whole) {  // no condition between the reads, so that all are under way before the first sum
        float x[kGradientQuads][4];
#pragma unroll
        for (int q = 0; q < kGradientQuads; ++q) read4(from + column(q), 4, true, x[q]);
#pragma unroll
        for (int q = 0; q < kGradientQuads; ++q) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[q][i] += x[q][i];
        }
        continue;
      }
      for_quads([&](int64_t c, int n, float(&sum)[4]) {
        float x[4];
        read4(from + c, n, a.quads, x);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] += x[i];
      });
    }
  }
  for_quads([&](int64_t c, int n, float(&sum)[4]) { write4(to + c, n, a.quads, sum); });
}

/// The document of a row: the last that begins at or before it.
__device__ inline int64_t document_of(const NoiseArguments& a, int64_t row) {
  int64_t low = 0, high = a.documents;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (a.offsets[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// The numbers of ops/noise.h, bit for bit; rounded as there.
template <int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    embedding_noise_kernel(const __grid_constant__ NoiseArguments a) {
  const RowThreads<kThreads> place;
  if (place.row >= a.rows || place.row >= a.offsets[a.documents]) return;
  const int64_t d = document_of(a, place.row);
  const int64_t tokens = a.offsets[d + 1] - a.offsets[d];
  const auto scale = static_cast<float>(a.alpha / sqrt(static_cast<double>(tokens * a.cols)));
  float* const to = a.x.data + place.row * a.x.stride;
  place.for_quads(a.cols, [&](int64_t c, int n) {
    float x[4];
    read4(to + c, n, a.quads, x);
    const Philox numbers =
        philox(static_cast<uint64_t>(c / 4), static_cast<uint64_t>(place.row), a.key);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto number = static_cast<int>(numbers.word[i] >> 8) - (1 << 23);
      x[i] += scale * (static_cast<float>(number) * 0x1p-23f);
    }
    write4(to + c, n, a.quads, x);
  });
}

}  // namespace

void embedding_noise_on(void* stream, const NoiseArguments& a) {
  if (a.documents == 0) return;
  launch_rows(embedding_noise_kernel<32>, embedding_noise_kernel<kRowBlock>, stream, a);
}

void embedding_on(void* stream, const EmbeddingArguments& a) {
  launch_rows(embedding_kernel<32>, embedding_kernel<kRowBlock>, stream, a);
}

void embedding_gradient_on(void* stream, const EmbeddingArguments& a) {
  if (a.rows == 0 || a.cols == 0) return;
  launch(embedding_gradient_kernel, {a.rows, parts_over(a.cols, kGradientColumns)},
         kGradientThreads, 0, stream, a);
}

}  // namespace hearth::HEARTH_GPU
