#include "machine_rates.h"

#include <immintrin.h>
#include <time.h>

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

double fma_rate(HostStream& stream) {
  const bool wide = __builtin_cpu_supports("avx512f");
  const int workers = stream.pool().workers();
  std::vector<float> keep(static_cast<size_t>(workers));
  const double time = best_time(stream, 0.05, [&] {
    stream.pool().run(workers, [&](int64_t tile, int) {
      keep[static_cast<size_t>(tile)] = wide ? fma_chains_512() : fma_chains_256();
    });
  });
  const double flops = wide ? 32.0 * kChains : 16.0 * 12;
  return flops * static_cast<double>(kSteps) * workers / time / 1e9;
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
