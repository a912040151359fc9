// Experts' products with a library and without: what it takes, what is left to our kernels, and that
// the results are the same but for the order of sums.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "cuda_emulator/emulated_grouped.h"
#include "cuda_emulator/plain_library.h"
#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/ops/products.h"
#include "support/test_stream.h"

using namespace hearth;
using namespace hearth::HEARTH_GPU;

namespace {

constexpr int64_t kIn = 72, kOut = 80, kRows = 140, kGroups = 4;
constexpr size_t kScratch = 1 << 20;

float number(size_t i) { return static_cast<float>((i * 7919 + 13) % 257) / 128 - 1; }

std::vector<bf16> rounded(size_t n, size_t seed) {
  std::vector<bf16> to(n);
  for (size_t i = 0; i < n; ++i) to[i] = to_bf16(number(i + seed));
  return to;
}

std::vector<float> numbers(size_t n, size_t seed) {
  std::vector<float> to(n);
  for (size_t i = 0; i < n; ++i) to[i] = number(i + seed);
  return to;
}

/// Experts of 5, no, 130 and 5 rows; the third has a pair of `rank`.
struct Case {
  std::vector<std::vector<bf16>> weights, weights2;
  std::vector<bf16> a, b;
  std::vector<LinearView> views, views2;
  std::vector<const LinearView*> maps, maps2;
  std::vector<float> x = numbers(kRows * kIn, 1), dy = numbers(kRows * kOut, 2);
  std::vector<float> dy2 = numbers(kRows * kOut, 3);

  explicit Case(int64_t rank = 0) {
    for (size_t g = 0; g < kGroups; ++g) {
      weights.push_back(rounded(kIn * kOut, 100 + g));
      weights2.push_back(rounded(kIn * kOut, 200 + g));
    }
    a = rounded(static_cast<size_t>(rank * kIn), 5);
    b = rounded(static_cast<size_t>(rank * kOut), 6);
    for (size_t g = 0; g < kGroups; ++g) {
      views.push_back({{weights[g].data(), DType::bf16, kOut, kIn}, {}, Compute::bf16, {}});
      views2.push_back({{weights2[g].data(), DType::bf16, kOut, kIn}, {}, Compute::bf16, {}});
    }
    if (rank > 0) {
      views[2].low_rank.a = {a.data(), DType::bf16, rank, kIn};
      views[2].low_rank.b = {b.data(), DType::bf16, kOut, rank};
      views[2].low_rank.scale = 0.5;
    }
    for (size_t g = 0; g < kGroups; ++g) {
      maps.push_back(&views[g]);
      maps2.push_back(&views2[g]);
    }
  }
  ConstView of(const std::vector<float>& v, int64_t columns) const {
    return {v.data(), DType::f32, kRows, columns};
  }
};

/// Runs `work` with products over the groups; the number of a library's products.
int64_t run(const std::function<void(Products&)>& work) {
  hearth::test::TestStream host(1, {kScratch, 0});
  GpuStream stream(host);
  const std::vector<int32_t> offsets = {0, 5, 5, 135, 140};
  GroupedRows rows{.rows = kRows, .groups = kGroups, .offsets = offsets.data()};
  rows.tile_count = static_cast<int32_t>(GroupedRows::most_tiles(kRows, kGroups));
  auto* const tiles = stream.scratch().take<TilePlace>(rows.tile_count);
  plan_tiles_on(stream.handle(), rows.offsets, rows.groups, tiles, rows.tile_count);
  rows.tiles = tiles;
  const int64_t before = hearth::test::emulated_grouped_products();
  Products products(stream, rows, Compute::bf16);
  work(products);
  return hearth::test::emulated_grouped_products() - before;
}

/// With a library, which takes `taken` products, and without: `result` is what `work` makes.
void check(int64_t taken, const std::vector<float>& begin,
           const std::function<void(Products&, float*)>& work) {
  const hearth::test::WithPlainLibrary library(hearth::test::PlainLibrary::right);
  std::vector<float> by_library = begin, ours = begin;
  CHECK(run([&](Products& p) { work(p, by_library.data()); }) == taken);
  refuse_library("CUTLASS");
  CHECK(run([&](Products& p) { work(p, ours.data()); }) == 0);
  refuse_library("CUTLASS", false);
  double difference = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(static_cast<double>(by_library[i]) - ours[i], 2);
    size += std::pow(ours[i], 2);
  }
  CHECK(size > 0);
  CHECK(std::sqrt(difference) <= 1e-6 * std::sqrt(size));
}

}  // namespace

TEST_CASE("grouped products: forward and dgrad, also added to what is there") {
  const Case c;
  for (const bool accumulate : {false, true}) {
    check(1, numbers(kRows * kOut, 9), [&](Products& p, float* y) {
      p.forward(p.operand(c.of(c.x, kIn)), {}, c.maps, {y, DType::f32, kRows, kOut}, accumulate);
    });
    check(1, numbers(kRows * kIn, 9), [&](Products& p, float* dx) {
      p.dgrad(p.operand(c.of(c.dy, kOut)), {}, c.maps, {dx, DType::f32, kRows, kIn}, accumulate);
    });
  }
}

TEST_CASE("grouped products: a narrow pair is left to our kernels, a wide one is not") {
  for (const int64_t rank : {8, 64}) {
    const Case c(rank);
    // The pair's own first product has a scale, which no library knows.
    check(rank == 8 ? 1 : 2, numbers(kRows * kOut, 9), [&](Products& p, float* y) {
      const Operand x = p.operand(c.of(c.x, kIn));
      p.forward(x, p.low_rank_input(x, c.maps), c.maps, {y, DType::f32, kRows, kOut}, false);
    });
  }
}

TEST_CASE("grouped products: both maps of a sum of two") {
  const Case c;
  check(2, numbers(kRows * kIn, 9), [&](Products& p, float* dx) {
    p.dgrad_of_two(p.operand(c.of(c.dy, kOut)), c.maps, p.operand(c.of(c.dy2, kOut)), c.maps2,
                   {dx, DType::f32, kRows, kIn});
  });
}

TEST_CASE("grouped products: wgrad is added, where there is a gradient") {
  const Case c;
  check(1, numbers(kGroups * kOut * kIn, 9), [&](Products& p, float* gradients) {
    p.wgrad(p.operand(c.of(c.dy, kOut)), p.operand(c.of(c.x, kIn)), [&](int g) {
      return g == 0 ? View() : View(gradients + g * kOut * kIn, DType::f32, kOut, kIn);
    });
  });
}
