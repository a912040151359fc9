#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"
#include "cpu_kernels/product.h"
#include "cpu_kernels/rounded_rows.h"
#include "support/counted_heap.h"
#include "support/tensor.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Memory {
  std::vector<std::byte> bytes;
  Scratch scratch;
  explicit Memory(size_t n) : bytes(n + 64), scratch(aligned(bytes), n) {}
  static std::byte* aligned(std::vector<std::byte>& bytes) {
    const auto at = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (align_up(at) - at);
  }
};

struct Case {
  int64_t m, n, k;
  DType left = DType::f32, right = DType::f32;
  bool transpose_left = false, transpose_right = false, bf16 = false, accumulate = false;
};

double operand(double x, bool bf16) { return bf16 ? round_to_bf16(static_cast<float>(x)) : x; }

Tensor side(const char* name, DType type, int64_t rows, int64_t cols, bool transposed) {
  Tensor t(type, transposed ? cols : rows, transposed ? rows : cols, 3);
  return t.fill_random(name);
}

/// Runs here, be it slowly: oneDNN's bf16 is emulated where AVX-512 is without it.
std::vector<const ProductImplementation*> implementations(bool bf16) {
  std::vector<const ProductImplementation*> all;
  for (const ProductImplementation* one : product_implementations(bf16)) {
    const bool emulated = bf16 && one->name() == "oneDNN" && onednn_has_avx512();
    if (one->missing().empty() || emulated) all.push_back(one);
  }
  return all;
}

void run(const ProductImplementation& one, bool bf16, const Operand& a, const Operand& b, View to,
         bool accumulate) {
  Memory memory(one.scratch_bytes());
  one.run(memory.scratch, {bf16, a, b, to.as<float>(), to.stride, accumulate, {}, &b});
}

void check(const Case& c) {
  CAPTURE(c.m, c.n, c.k, c.transpose_left, c.transpose_right, c.bf16, c.accumulate);
  const Tensor a = side("a", c.left, c.m, c.k, c.transpose_left);
  const Tensor b = side("b", c.right, c.k, c.n, c.transpose_right);
  Tensor to(DType::f32, c.m, c.n, 5), expected(DType::f64, c.m, c.n);
  to.fill_random("c");
  // The right side as rows of columns, read once: its elements are used again in every row.
  std::vector<double> right(static_cast<size_t>(c.k * c.n)), sums(static_cast<size_t>(c.n));
  for (int64_t p = 0; p < c.k; ++p) {
    for (int64_t j = 0; j < c.n; ++j) {
      right[p * c.n + j] = operand(c.transpose_right ? b.get(j, p) : b.get(p, j), c.bf16);
    }
  }
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) sums[j] = c.accumulate ? to.get(i, j) : 0;
    for (int64_t p = 0; p < c.k; ++p) {
      const double left = operand(c.transpose_left ? a.get(p, i) : a.get(i, p), c.bf16);
      const double* row = right.data() + p * c.n;
      for (int64_t j = 0; j < c.n; ++j) sums[j] += left * row[j];
    }
    for (int64_t j = 0; j < c.n; ++j) expected.set(i, j, sums[j]);
  }
  const Operand left(a.view(), c.transpose_left), right_side(b.view(), c.transpose_right);
  const Tensor before = to;
  for (const ProductImplementation* one : implementations(c.bf16)) {
    if (c.k == 0) continue;
    CAPTURE(one->name());
    to = before;
    run(*one, c.bf16, left, right_side, to.view(), c.accumulate);
    CHECK(difference(to, expected, 1e-5).empty());
    CHECK(to.canaries_alive());
  }
  to = before;
  Memory memory(multiply_scratch());
  multiply(memory.scratch, c.bf16, left, right_side, to.view().as<float>(), to.view().stride,
           c.accumulate);
  CHECK(difference(to, expected, 1e-5).empty());
  CHECK(to.canaries_alive());

  const bool in_place = !c.bf16 && !c.transpose_right && c.right == DType::f32;
  if (!in_place && !(c.bf16 && has_small_pairs(c.k))) return;
  std::vector<float> packed(static_cast<size_t>(small_pairs_floats(c.k, c.n)), NAN),
      rows(kLeftFloats);
  const SmallRight small = in_place
                               ? right_in_place(b.view().as<float>(), c.k, c.n, b.view().stride)
                               : right_in_pairs(right_side, packed.data());
  to = before;
  multiply_small(left, small, to.view().as<float>(), to.view().stride, c.accumulate, rows.data());
  CHECK(difference(to, expected, 1e-5).empty());
  CHECK(to.canaries_alive());
}

}  // namespace

TEST_CASE("products: every orientation and stored type, sizes around every block") {
  const int64_t sizes[] = {1, 5, 14, 16, 17, 33, 100, 224};
  int64_t i = 0;
  for (const int64_t m : sizes) {
    for (const int64_t n : sizes) {
      const int64_t k = (i * 37) % 600 + 1;
      const DType types[] = {DType::f32, DType::bf16, DType::f16};
      Case c{m, n, k, types[i % 3], types[i / 3 % 3]};
      c.transpose_left = i & 1;
      c.transpose_right = i & 2;
      c.bf16 = i & 4;
      c.accumulate = i & 8;
      check(c);
      ++i;
    }
  }
  check({3, 4, 0});
  check({20, 7, 256, DType::f32, DType::f32, false, false, false, true});
  check({30, 7, 257});
}

TEST_CASE("products: several panels of columns and blocks of depth, with what comes next") {
  for (int64_t i = 0; i < 16; ++i) {
    Case c{i % 3 ? 300 : 40, i % 5 ? 530 : 270, i % 2 ? 800 : 385};
    c.transpose_left = i & 1;
    c.transpose_right = i & 2;
    c.bf16 = i & 4;
    c.accumulate = i & 8;
    c.right = i % 7 == 3 ? DType::bf16 : DType::f32;
    check(c);
  }
}

TEST_CASE("products: several depths of a library's call, and operands that are rounded") {
  check({33, 17, 1100, DType::bf16, DType::f32, false, true, true, false});
  check({7, 224, 100, DType::f32, DType::bf16, true, false, true, true});
  check({224, 40, 31, DType::f16, DType::f32, false, false, true, false});
  check({300, 290, 70, DType::f32, DType::f32, true, false, true, true});
}

TEST_CASE("products: a row's bits do not depend on how rows and columns are cut") {
  const Tensor a = side("a", DType::f32, 300, 900, false);
  for (const bool bf16 : {false, true}) {
    for (const ProductImplementation* one : implementations(bf16)) {
      CAPTURE(one->name(), bf16);
      for (const bool transposed : {false, true}) {
        const Tensor b = side("b", DType::f32, 900, 300, transposed);
        const auto product = [&](int64_t m, int64_t n) {
          Tensor to(DType::f32, 300, 300);
          for (int64_t i = 0; i < 300; i += m) {
            for (int64_t j = 0; j < 300; j += n) {
              const int64_t rows = std::min(m, 300 - i), cols = std::min(n, 300 - j);
              const Operand left = Operand(a.view()).block(i, rows, 0, 900);
              const Operand right = Operand(b.view(), transposed).block(0, 900, j, cols);
              run(*one, bf16, left, right,
                  View(to.view().row<float>(i) + j, DType::f32, rows, cols, 300), false);
            }
          }
          return to;
        };
        const Tensor whole = product(300, 300);
        CHECK(whole.same_bits(product(1, 300)));
        CHECK(whole.same_bits(product(17, 47)));
        CHECK(whole.same_bits(product(300, 3)));
      }
    }
  }
}

TEST_CASE("products: a tail is more of k, in every implementation, and where it is long") {
  for (const bool bf16 : {false, true}) {
    for (const int64_t rank : {1, 16, 47, 300}) {
      for (const int64_t m : {3, 90}) {
        for (const bool transposed : {false, true}) {
          CAPTURE(bf16, rank, m, transposed);
          const Tensor a = side("a", DType::f32, m, 500, false);
          const Tensor b = side("b", DType::f32, 500, 70, transposed);
          const Tensor u = side("u", DType::f32, m, rank, false);
          const Tensor v = side("v", DType::bf16, rank, 70, !transposed);
          Tensor to(DType::f32, m, 70), expected(DType::f64, m, 70);
          to.fill_random("c");
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < 70; ++j) {
              double sum = to.get(i, j);
              for (int64_t p = 0; p < 500; ++p) {
                sum += operand(a.get(i, p), bf16) *
                       operand(transposed ? b.get(j, p) : b.get(p, j), bf16);
              }
              for (int64_t p = 0; p < rank; ++p) {
                sum += operand(u.get(i, p), bf16) *
                       operand(transposed ? v.get(p, j) : v.get(j, p), bf16);
              }
              expected.set(i, j, sum);
            }
          }
          const Tail tail{u.view(), Operand(v.view(), !transposed)};
          const Operand right(b.view(), transposed);
          const Tensor before = to;
          Memory memory(multiply_scratch());
          multiply(memory.scratch,
                   {bf16, a.view(), right, to.view().as<float>(), to.view().stride, true, tail});
          CHECK(difference(to, expected, 1e-5).empty());
          for (const ProductImplementation* one : implementations(bf16)) {
            if (!one->takes_tail() || rank > 100) continue;
            CAPTURE(one->name());
            to = before;
            Memory own(one->scratch_bytes());
            one->run(own.scratch,
                     {bf16, a.view(), right, to.view().as<float>(), to.view().stride, true, tail});
            CHECK(difference(to, expected, 1e-5).empty());
          }
        }
      }
    }
  }
}

TEST_CASE("products: rows through an index are as good as a copy of them") {
  constexpr int64_t kChoices = 3;
  const auto check_indexed = [&](const auto& run_product) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      for (const int64_t rows : {1, 5, 40, 530}) {
        CAPTURE(rows, hearth::name_of(type));
        const Tensor all = side("all", type, 37, 90, false);
        std::vector<int32_t> source;
        Tensor copy(type, rows, 90);
        for (int64_t r = 0; r < rows; ++r) {
          source.push_back(static_cast<int32_t>(r * 71 % (37 * kChoices)));
          for (int64_t c = 0; c < 90; ++c) copy.set(r, c, all.get(source.back() / kChoices, c));
        }
        const Operand indexed(all.view(), RowIndex{source.data(), kChoices}, rows);
        const Operand whole(copy.view());
        const Tensor other = side("other", DType::f32, rows, 33, false);
        const Tensor weight = side("weight", DType::f32, 60, 33, false);
        const auto product = [&](const Operand& a, const Operand& b) {
          Tensor to(DType::f32, a.rows(), b.cols());
          run_product(a, b, to.view());
          return to;
        };
        const auto part = [&](const Operand& x) { return x.block(0, rows, 20, 60); };
        CHECK(product(part(indexed), weight.view()).same_bits(product(part(whole), weight.view())));
        CHECK(product(part(indexed).transpose(), other.view())
                  .same_bits(product(part(whole).transpose(), other.view())));
        CHECK(product(Operand(other.view(), true), part(indexed))
                  .same_bits(product(Operand(other.view(), true), part(whole))));
        const Operand last = indexed.block(rows - 1, 1, 0, 90),
                      same = whole.block(rows - 1, 1, 0, 90);
        CHECK(product(last.transpose(), other.view().slice(0, 1))
                  .same_bits(product(same.transpose(), other.view().slice(0, 1))));
      }
    }
  };
  for (const bool bf16 : {false, true}) {
    check_indexed([&](const Operand& a, const Operand& b, View to) {
      Memory memory(multiply_scratch());
      multiply(memory.scratch, bf16, a, b, to.as<float>(), to.stride, false);
    });
    for (const ProductImplementation* one : implementations(bf16)) {
      check_indexed(
          [&](const Operand& a, const Operand& b, View to) { run(*one, bf16, a, b, to, false); });
    }
  }
}

TEST_CASE("products: what was rounded before gives the same bits") {
  for (const int64_t n : {1, 31, 32, 70, 300}) {
    Tensor x = side("x", DType::f32, 90, n, false);
    for (int64_t i = 0; i < n; ++i) x.set(i % 90, i, x.get(i % 90, i) * (i % 2 ? 1e-39 : 1e30));
    Tensor rounded(DType::bf16, 90, n, 3), in_place = x;
    const int64_t stride = in_place.view().stride;
    for (int64_t r = 0; r < 90; ++r) {
      round_row(x.view().row<float>(r), rounded.view().row<bf16>(r), n);
      auto* const row = in_place.view().row<float>(r);
      round_row(row, reinterpret_cast<bf16*>(row), n);
    }
    CHECK(rounded.canaries_alive());
    const ConstView there(in_place.view().data, DType::bf16, 90, n, 2 * stride);
    const Tensor other = side("other", DType::f32, 90, 40, false);
    const Tensor weight = side("weight", DType::f32, n, 40, false);
    for (const ProductImplementation* one : implementations(true)) {
      CAPTURE(n, one->name());
      const auto product = [&](const Operand& a, const Operand& b) {
        Tensor to(DType::f32, a.rows(), b.cols());
        run(*one, true, a, b, to.view(), false);
        return to;
      };
      for (const ConstView& v : {ConstView(rounded.view()), there}) {
        CHECK(product(x.view(), weight.view()).same_bits(product(v, weight.view())));
        CHECK(product(Operand(x.view(), true), other.view())
                  .same_bits(product(Operand(v, true), other.view())));
        CHECK(product(Operand(other.view(), true), x.view())
                  .same_bits(product(Operand(other.view(), true), v)));
      }
    }
  }
}

TEST_CASE("micro kernels: the same bits with either vector length") {
  if (!onednn_has_avx512()) SKIP("no AVX-512");
  constexpr int64_t kDepth = 200;
  const Tensor a = Tensor(DType::f32, 6, kDepth).fill_random("a");
  const Tensor b = Tensor(DType::f32, kDepth, 16).fill_random("b");
  for (int64_t m = 1; m <= 6; ++m) {
    for (int64_t n = 1; n <= 16; ++n) {
      Tensor narrow(DType::f32, m, n, 2), wide(DType::f32, m, n, 2);
      narrow.fill_random("c");
      wide.fill_random("c");
      const auto run = [&](const MicroKernel& kernel, Tensor& c) {
        std::vector<float> left(static_cast<size_t>(m * kLeftRow));
        kernel.pack_left(a.view().slice(0, m), false, m, 0, left.data());
        kernel.run(m, n, kDepth, left.data(), true, b.view().as<float>(), 16, c.view().as<float>(),
                   c.view().stride, true, {});
      };
      run(kAvx2Kernel, narrow);
      run(kAvx512Kernel, wide);
      CHECK(narrow.same_bits(wide));
      CHECK(wide.canaries_alive());
    }
  }
}

TEST_CASE("products: the ordered lists, and what each implementation takes") {
  const auto names = [](bool bf16) {
    std::vector<std::string> all;
    for (const ProductImplementation* one : product_implementations(bf16)) {
      all.emplace_back(one->name());
    }
    return all;
  };
  const std::vector<std::string> with{"packed tiles", "packed bf16", "oneDNN", "packed f32"};
  const std::vector<std::string> without{"packed bf16", "oneDNN", "packed f32", "packed tiles"};
  CHECK(names(true) == (onednn_has_amx() ? with : without));
  CHECK(names(false) == std::vector<std::string>{"packed f32", "oneDNN"});
  for (const ProductImplementation* one : product_implementations(true)) {
    const bool there = one->name() == "packed tiles" ? onednn_has_amx()
                       : one->name() == "packed f32" ? true
                                                     : onednn_has_fast_bf16();
    CHECK(one->missing().empty() == there);
  }
}

// oneDNN makes a table of the arguments of each call: 7 blocks in version 2.6. As the own kernels precede
// it in the lists, it is in no step.
TEST_CASE("products: own kernels take nothing from the heap, oneDNN little for each call") {
  constexpr int64_t kRows = 70, kColumns = 300, kDepth = 500;
  constexpr int64_t kCalls = 3 + 2 * 3;  // of oneDNN: blocks of columns to pack, blocks to multiply
  for (const bool bf16 : {false, true}) {
    const Tensor a = side("a", DType::f32, kRows, kDepth, false);
    const Tensor b = side("b", DType::f32, kDepth, kColumns, true);
    const Operand left(a.view(), false), right(b.view(), true);
    Tensor to(DType::f32, kRows, kColumns);
    for (const ProductImplementation* one : implementations(bf16)) {
      CAPTURE(bf16, one->name());
      Memory memory(one->scratch_bytes());
      const auto run_once = [&] {
        const int64_t before = heap_calls();
        one->run(memory.scratch, {bf16, left, right, to.view().as<float>(), kColumns});
        return heap_calls() - before;
      };
      run_once();
      const int64_t taken = run_once();
      CHECK(taken <= (one->name() == "oneDNN" ? 12 * kCalls : 0));
    }
  }
}
