#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"
#include "cpu_kernels/product.h"
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

using Multiply = void (*)(Scratch&, const Case&, const Operand&, const Operand&, Tensor&);

void own(Scratch& scratch, const Case& c, const Operand& a, const Operand& b, Tensor& to) {
  multiply(scratch, c.bf16, a, b, to.view().as<float>(), to.view().stride, c.accumulate, &b);
}
void library(Scratch& scratch, const Case& c, const Operand& a, const Operand& b, Tensor& to) {
  onednn_multiply_bf16(scratch, a, b, to.view().as<float>(), to.view().stride, c.accumulate);
}

void check(const Case& c, size_t scratch, Multiply multiply_by) {
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
  Memory memory(scratch);
  multiply_by(memory.scratch, c, Operand(a.view(), c.transpose_left),
              Operand(b.view(), c.transpose_right), to);
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
      check(c, multiply_scratch(), own);
      ++i;
    }
  }
  check({3, 4, 0}, multiply_scratch(), own);
  check({20, 7, 256, DType::f32, DType::f32, false, false, false, true}, multiply_scratch(), own);
  check({30, 7, 257}, multiply_scratch(), own);
}

TEST_CASE("products: several panels of columns and blocks of depth, with what comes next") {
  for (int64_t i = 0; i < 16; ++i) {
    Case c{i % 3 ? 300 : 40, i % 5 ? 530 : 270, i % 2 ? 800 : 385};
    c.transpose_left = i & 1;
    c.transpose_right = i & 2;
    c.bf16 = i & 4;
    c.accumulate = i & 8;
    c.right = i % 7 == 3 ? DType::bf16 : DType::f32;
    check(c, multiply_scratch(), own);
  }
}

TEST_CASE("products: a row's bits do not depend on how rows and columns are cut") {
  CHECK(multiply_keeps_rows_apart(false));
  const Tensor a = side("a", DType::f32, 300, 900, false);
  Memory memory(multiply_scratch());
  for (const bool bf16 : {false, true}) {
    if (!multiply_keeps_rows_apart(bf16)) continue;
    for (const bool transposed : {false, true}) {  // in rows, few rows of A leave B where it stands
      const Tensor b = side("b", DType::f32, 900, 300, transposed);
      const auto product = [&](int64_t m, int64_t n) {
        Tensor to(DType::f32, 300, 300);
        for (int64_t i = 0; i < 300; i += m) {
          for (int64_t j = 0; j < 300; j += n) {
            const int64_t rows = std::min(m, 300 - i), cols = std::min(n, 300 - j);
            multiply(memory.scratch, bf16, Operand(a.view()).block(i, rows, 0, 900),
                     Operand(b.view(), transposed).block(0, 900, j, cols),
                     to.view().row<float>(i) + j, 300, false);
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

TEST_CASE("products: rows through an index are as good as a copy of them") {
  constexpr int64_t kChoices = 3;
  const auto check_indexed = [&](size_t bytes, const auto& run) {
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
        Memory memory(bytes);
        const auto product = [&](const Operand& a, const Operand& b) {
          Tensor to(DType::f32, a.rows(), b.cols());
          run(memory.scratch, a, b, to);
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
    check_indexed(
        multiply_scratch(), [&](Scratch& scratch, const Operand& a, const Operand& b, Tensor& to) {
          multiply(scratch, bf16, a, b, to.view().as<float>(), to.view().stride, false, &b);
        });
  }
  if (!onednn_has_avx512()) return;
  check_indexed(onednn_multiply_scratch(), [&](Scratch& scratch, const Operand& a, const Operand& b,
                                               Tensor& to) {
    onednn_multiply_bf16(scratch, a, b, to.view().as<float>(), to.view().stride, false);
  });
}

TEST_CASE("products: oneDNN's bf16 rounds its operands as the f32 way does") {
  if (!onednn_has_avx512()) SKIP("oneDNN has bf16 products from AVX-512 on, be it emulated");
  const size_t scratch = onednn_multiply_scratch();
  check({33, 17, 1100, DType::bf16, DType::f32, false, true, true, false}, scratch, library);
  check({7, 224, 100, DType::f32, DType::bf16, true, false, true, true}, scratch, library);
  check({224, 40, 31, DType::f16, DType::f32, false, false, true, false}, scratch, library);
  check({300, 290, 70, DType::f32, DType::f32, true, false, true, true}, scratch, library);
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
        std::vector<float> left(static_cast<size_t>(kernel.left_strip(kDepth)));
        kernel.pack_left(a.view().slice(0, m), false, m, left.data());
        kernel.run(m, n, kDepth, left.data(), b.view().as<float>(), 16, c.view().as<float>(),
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
  CHECK(names(true) == std::vector<std::string>{"oneDNN", "packed f32"});
  CHECK(names(false) == std::vector<std::string>{"f32 in place", "packed f32"});
  CHECK(product_implementations(true)[0]->missing().empty() == onednn_has_fast_bf16());

  const ProductImplementation& in_place = *product_implementations(false)[0];
  const int64_t few = 2 * micro_kernel().rows;
  const Tensor a(DType::f32, few + 1, 8), b(DType::f32, 8, 8), rounded(DType::bf16, 8, 8);
  const auto declines = [&](int64_t rows, const Operand& right) {
    MatrixProduct product{.a = ConstView(a.view()).slice(0, rows), .b = right};
    return std::string(in_place.declines(product));
  };
  CHECK(declines(few, b.view()).empty());
  CHECK(declines(few + 1, b.view()) == "more than two strips of rows");
  CHECK(declines(few, Operand(b.view(), true)) == "B is not f32 in rows");
  CHECK(declines(few, rounded.view()) == "B is not f32 in rows");
  for (const ProductImplementation* one : product_implementations(true)) {
    CHECK(one->declines({.bf16 = true, .a = a.view(), .b = b.view()}).empty());
  }
}
