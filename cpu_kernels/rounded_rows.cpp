#include "cpu_kernels/rounded_rows.h"

#include <algorithm>
#include <cstring>

#include "cpu_kernels/onednn_shim.h"
#include "cpu_kernels/packing.h"
#include "cpu_kernels/tiles.h"

#define HEARTH_TARGET __attribute__((target("avx512f,avx512bw,avx512bf16")))

#include "cpu_kernels/vector_avx512_bf16.h"

namespace hearth {

namespace {

HEARTH_TARGET void round_row_in_pairs(const float* from, bf16* to, int64_t n) {
  constexpr int64_t kBlock = PairVector::kLanes * PairVector::kDepth;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const auto pairs = PairVector::read(from + i);
    std::memcpy(static_cast<void*>(to + i), &pairs, sizeof pairs);
  }
  if (i == n) return;
  float rest[kBlock] = {};
  std::memcpy(rest, from + i, static_cast<size_t>(n - i) * sizeof(float));
  const auto pairs = PairVector::read(rest);
  std::memcpy(static_cast<void*>(to + i), &pairs, static_cast<size_t>(n - i) * sizeof(bf16));
}

}  // namespace

void round_row(const float* from, bf16* to, int64_t n) {
  onednn_has_fast_bf16() ? round_row_in_pairs(from, to, n) : store_rounded(from, to, n);
}

ConstView rounded_rows(HostStream& host, Scratch& scratch, const ConstView& x) {
  const View to(scratch.take<bf16>(x.rows * x.cols), DType::bf16, x.rows, x.cols);
  for_blocks(host, x.rows, row_block(x.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) round_row(x.row<float>(r), to.row<bf16>(r), x.cols);
  });
  return to;
}

}  // namespace hearth
