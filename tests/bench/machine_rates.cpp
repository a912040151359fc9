#include "machine_rates.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace hearth::bench {
namespace {

constexpr int kChains = 24;
constexpr int64_t kSteps = 40000;

__attribute__((target("avx512f"), noinline)) float fma_chains_512() {
  __m512 x[kChains];
  for (auto& v : x) v = _mm512_set1_ps(1e-3f);
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-4f);
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < kChains; ++j) x[j] = _mm512_fmadd_ps(x[j], a, b);
  }
  __m512 sum = x[0];
  for (int j = 1; j < kChains; ++j) sum = _mm512_add_ps(sum, x[j]);
  float lane[16];
  _mm512_storeu_ps(lane, sum);
  return *std::max_element(lane, lane + 16);
}

__attribute__((noinline)) float fma_chains_256() {
  constexpr int kFew = 12;
  __m256 x[kFew];
  for (auto& v : x) v = _mm256_set1_ps(1e-3f);
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-4f);
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < kFew; ++j) x[j] = _mm256_fmadd_ps(x[j], a, b);
  }
  __m256 sum = x[0];
  for (int j = 1; j < kFew; ++j) sum = _mm256_add_ps(sum, x[j]);
  float lane[8];
  _mm256_storeu_ps(lane, sum);
  return *std::max_element(lane, lane + 8);
}

__attribute__((target("avx512f,avx512bf16"), noinline)) float dot_chains() {
  __m512 x[kChains];
  for (auto& v : x) v = _mm512_set1_ps(1e-3f);
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(-1e-4f), _mm512_set1_ps(1e-4f));
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < kChains; ++j) x[j] = _mm512_dpbf16_ps(x[j], a, b);
  }
  __m512 sum = x[0];
  for (int j = 1; j < kChains; ++j) sum = _mm512_add_ps(sum, x[j]);
  float lane[16];
  _mm512_storeu_ps(lane, sum);
  return *std::max_element(lane, lane + 16);
}

// Four sums of 16 x 16, each of 32 products deep, as kernels of tiles have them.
__attribute__((target("amx-tile,amx-bf16"), noinline)) float tile_chains() {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  alignas(64) float memory[256] = {};
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, memory, 64);
  _tile_loadd(5, memory, 64);
  _tile_loadd(6, memory, 64);
  _tile_loadd(7, memory, 64);
  for (int64_t i = 0; i < kSteps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, memory, 64);
  _tile_release();
  return memory[0];
}

// The system lends a process the tiles' registers if it asks.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16Tiles = 1u << 22, kTiles = 1u << 24;
  constexpr int kAskForState = 0x1023, kTileState = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16Tiles) && (d & kTiles) &&
         syscall(SYS_arch_prctl, kAskForState, kTileState) == 0;
}

bool has_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16Pairs = 1u << 5;
  return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & kBf16Pairs);
}

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

double best_time(HostStream& stream, double window, const std::function<void()>& call) {
  const clockid_t clock = stream.pool().workers() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  double best = 1e30;
  const double begin = seconds(clock);
  for (int calls = 0; calls < 3 || seconds(clock) - begin < window; ++calls) {
    const double t = seconds(clock);
    call();
    best = std::min(best, seconds(clock) - t);
  }
  return best;
}

namespace {

// Of chains that do `flops` operations a step.
double rate_of(HostStream& stream, float (*chains)(), double flops) {
  const int workers = stream.pool().workers();
  std::vector<float> keep(static_cast<size_t>(workers));
  const double time = best_time(stream, 0.05, [&] {
    stream.pool().run(workers,
                      [&](int64_t tile, int) { keep[static_cast<size_t>(tile)] = chains(); });
  });
  return flops * static_cast<double>(kSteps) * workers / time / 1e9;
}

}  // namespace

double fma_rate(HostStream& stream) {
  return __builtin_cpu_supports("avx512f") ? rate_of(stream, fma_chains_512, 32.0 * kChains)
                                           : rate_of(stream, fma_chains_256, 16.0 * 12);
}

double dot_rate(HostStream& stream) {
  return has_pairs() ? rate_of(stream, dot_chains, 64.0 * kChains) : 0;
}

double tile_rate(HostStream& stream) {
  static const bool there = has_tiles();
  return there ? rate_of(stream, tile_chains, 4 * 2.0 * 16 * 16 * 32) : 0;
}

double triad_rate(HostStream& stream, int64_t n) {
  std::vector<float> a(static_cast<size_t>(n)), b(a), c(a);
  constexpr int64_t kBlock = 16384;
  const double time = best_time(stream, 1.0, [&] {
    stream.pool().run(n / kBlock, [&](int64_t tile, int) {
      float* x = a.data() + tile * kBlock;
      const float *y = b.data() + tile * kBlock, *z = c.data() + tile * kBlock;
      for (int64_t i = 0; i < kBlock; ++i) x[i] = y[i] + 0.5f * z[i];
    });
  });
  return 16.0 * static_cast<double>(n / kBlock * kBlock) / time / 1e9;
}

}  // namespace hearth::bench
