#include "cpu_kernels/product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"
#include "ops/implementations.h"

namespace hearth {
namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line
// Columns of B that are packed together: with kDepthBlock rows they leave the second cache room.
constexpr int64_t kPanelColumns = 256;
// Strips of A that are packed together where it is transposed: 20 of 14 rows.
constexpr int64_t kLeftPanelFloats = 20 * 16 * (kDepthBlock + 1);

void clear(float* c, int64_t ldc, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
}

// B over one block of k, as strips `step` floats apart, and where its product goes.
struct Panel {
  const float* strips;
  int64_t ld, step, n;
  float* c;
  int64_t ldc;
};

// Brings a matrix from memory to the second cache while kernels run, some lines with each: a column
// of lines of its rows, or, where rows are few and long, 16 lines of some rows.
class Fetch {
 public:
  Fetch() = default;
  explicit Fetch(const Operand& x, bool rows_are_long) : Fetch(x.memory, rows_are_long) {
    if (x.index) rows_ = 0;  // its rows are apart
  }
  Fetch(const ConstView& v, bool rows_are_long)
      : data_(static_cast<const std::byte*>(v.data)),
        row_(v.stride * static_cast<int64_t>(size_of(v.dtype))),
        rows_(v.rows),
        lines_((v.cols * static_cast<int64_t>(size_of(v.dtype)) + kLine - 1) / kLine),
        long_(rows_are_long) {}

  bool done() const { return row_at_ >= rows_ || line_at_ >= lines_; }

  // For a kernel of `k` steps.
  Ahead next(int64_t k) {
    const std::byte* at = data_ + row_at_ * row_ + line_at_ * kLine;
    if (!long_) {
      ++line_at_;
      return {at, row_, 16 * row_};
    }
    line_at_ += 16;
    if (line_at_ >= lines_) {
      line_at_ = 0;
      row_at_ += std::max<int64_t>(1, k / 32);
    }
    return {at, kLine, row_};
  }

 private:
  const std::byte* data_ = nullptr;
  int64_t row_ = 0, rows_ = 0, lines_ = 0;
  bool long_ = false;
  int64_t row_at_ = 0, line_at_ = 0;
};

// Packs a block of B for the next round piece by piece between kernels: each piece is on its way
// from memory while the kernel before it runs, and neither waits for the other.
class PanelPacker {
 public:
  PanelPacker() = default;
  // In at most some `calls` pieces.
  PanelPacker(const Operand& b, bool round, float* target, int64_t calls)
      : b_(b), round_(round), target_(target) {
    const int64_t k = b.rows();
    if (b.transposed) {
      const int64_t pieces = std::max<int64_t>(1, calls / ((b.cols() + kUnit - 1) / kUnit));
      depth_ = ((k + pieces - 1) / pieces + 15) / 16 * 16;
      columns_ = kUnit;
    } else {
      depth_ = (k + calls - 1) / calls;
      columns_ = b.cols();
    }
  }

  bool done() const { return column_ >= b_.cols(); }

  // The next piece: rows are long where B is transposed, and read some columns at a time.
  Ahead ahead() const {
    if (b_.index) return {};
    const ConstView piece = next().memory;
    const auto row = piece.stride * static_cast<int64_t>(size_of(piece.dtype));
    const auto* at = static_cast<const std::byte*>(piece.data);
    return b_.transposed ? Ahead{at, row, kLine} : Ahead{at, kLine, row};
  }

  void pack_all() {
    while (!done()) pack();
  }

  void pack() {
    const MicroKernel& kernel = micro_kernel();
    const int64_t strip = b_.rows() * kernel.lanes;
    kernel.pack_right(
        next(), round_, strip,
        target_ + column_ / kernel.lanes * strip + column_ % kernel.lanes + row_ * kernel.lanes);
    row_ += depth_;
    if (row_ < b_.rows()) return;
    row_ = 0;
    column_ += columns_;
  }

 private:
  static constexpr int64_t kUnit = 16;

  Operand next() const {
    return b_.block(row_, std::min(depth_, b_.rows() - row_), column_,
                    std::min(columns_, b_.cols() - column_));
  }

  Operand b_ = ConstView();
  bool round_ = false;
  float* target_ = nullptr;
  int64_t depth_ = 0, columns_ = 0;  // of a piece
  int64_t row_ = 0, column_ = 0;     // where the next piece begins
};

// Strips of A are packed when their turn comes; each stays in the first cache while all strips of B,
// which stream from the second, are multiplied by it. The next ones, and what B holds next, are on
// their way from memory meanwhile.
void multiply_strips(const MicroKernel& kernel, const Operand& a, bool round, const Panel& panel,
                     bool add, float* left, int64_t left_floats, PanelPacker packer, Fetch right) {
  const int64_t m = a.rows(), k = a.cols();
  const int64_t strips = (m + kernel.rows - 1) / kernel.rows;
  // As even as can be, `wide` of them one row more than the rest: few rows leave the units idle.
  const int64_t narrow = m / strips, wide = m - narrow * strips;
  // Columns of A that stand as rows are read in pieces of some strips, rows one strip at a time.
  const int64_t group = a.transposed ? left_floats / kernel.left_strip(kDepthBlock) : 1;
  for (int64_t s = 0, i = 0; s < strips;) {
    const int64_t rows = s < wide ? narrow + 1 : narrow;
    const int64_t some = std::min(group, (s < wide ? wide : strips) - s);
    kernel.pack_left(a.block(i, some * rows, 0, k), round, rows, left);
    const int64_t after = i + some * rows;
    const Operand next = a.block(after, std::min(group * rows, m - after), 0, k);
    Fetch fetch(next, !a.transposed);
    for (int64_t l = 0; l < some; ++l, ++s, i += rows) {
      for (int64_t j = 0; j < panel.n; j += kernel.lanes) {
        const Ahead ahead = !packer.done()  ? packer.ahead()
                            : !fetch.done() ? fetch.next(k)
                            : !right.done() ? right.next(k)
                                            : Ahead{};
        kernel.run(rows, std::min<int64_t>(kernel.lanes, panel.n - j), k,
                   left + l * kernel.left_strip(k), panel.strips + j / kernel.lanes * panel.step,
                   panel.ld, panel.c + i * panel.ldc + j, panel.ldc, add, ahead);
        if (!packer.done()) packer.pack();
      }
    }
  }
  packer.pack_all();
}

}  // namespace

Blocks::Blocks(int64_t n, int64_t largest) : size(n) {
  if (n == 0) return;
  const int64_t blocks = (n + largest - 1) / largest;
  step = ((n + blocks - 1) / blocks + 15) / 16 * 16;
}

void multiply_in_place(const Operand& a, bool round_left, const float* b, int64_t ldb, int64_t n,
                       float* c, int64_t ldc, bool accumulate, float* left) {
  const MicroKernel& kernel = micro_kernel();
  const int64_t m = a.rows();
  const Blocks depth(a.cols(), kDepthBlock);
  if (depth.size == 0 && !accumulate) clear(c, ldc, m, n);
  for (int64_t d = 0; m > 0 && d < depth.count(); ++d) {
    const int64_t p = depth.begin(d);
    const Panel panel{b + p * ldb, ldb, kernel.lanes, n, c, ldc};
    multiply_strips(kernel, a.block(0, m, p, depth.length(d)), round_left, panel,
                    accumulate || d > 0, left, kLeftFloats, {}, {});
  }
}

namespace {

/// oneDNN's bf16 products, which need a bf16 instruction set to be fast.
class OnednnProducts final : public ProductImplementation {
 public:
  std::string_view name() const override { return "oneDNN"; }
  std::string missing() const override {
    return onednn_has_fast_bf16() ? "" : onednn_isa() + " has no bf16 products";
  }
  void run(Scratch& scratch, const MatrixProduct& p) const override {
    onednn_multiply_bf16(scratch, p.a, p.b, p.c, p.ldc, p.accumulate);
  }
  size_t scratch_bytes() const override { return onednn_multiply_scratch(); }
  /// The library chooses its blocking by the number of rows.
  bool keeps_rows_apart() const override { return false; }
  bool needs_bf16_products() const override { return true; }
};

/// f32 with B as it stands in memory: packing it does not pay if few strips of A use it.
class ProductsInPlace final : public ProductImplementation {
 public:
  std::string_view name() const override { return "f32 in place"; }
  std::string_view declines(const MatrixProduct& p) const override {
    if (p.b.transposed || p.b.index || p.b.memory.dtype != DType::f32)
      return "B is not f32 in rows";
    return p.a.rows() <= 2 * micro_kernel().rows ? "" : "more than two strips of rows";
  }
  void run(Scratch& scratch, const MatrixProduct& p) const override {
    Scratch::Frame frame(scratch);
    multiply_in_place(p.a, false, p.b.memory.as<float>(), p.b.memory.stride, p.b.cols(), p.c, p.ldc,
                      p.accumulate, scratch.take<float>(kLeftFloats));
  }
  size_t scratch_bytes() const override {
    return sizeof(float) * static_cast<size_t>(kLeftFloats) + kArenaAlignment;
  }
};

/// Both operands are packed, and rounded first if the product is bf16; the multiplications are f32.
class PackedProducts final : public ProductImplementation {
 public:
  std::string_view name() const override { return "packed f32"; }
  void run(Scratch& scratch, const MatrixProduct& p) const override;
  size_t scratch_bytes() const override {
    constexpr int64_t packed = kLeftPanelFloats + 2 * kDepthBlock * kPanelColumns;
    return sizeof(float) * static_cast<size_t>(packed) + 3 * kArenaAlignment;
  }
};

void PackedProducts::run(Scratch& scratch, const MatrixProduct& product) const {
  const auto& [bf16, a, b, c, ldc, accumulate, coming] = product;
  const MicroKernel& kernel = micro_kernel();
  const int64_t m = a.rows(), n = b.cols();
  Scratch::Frame frame(scratch);
  const Blocks depth(a.cols(), kDepthBlock), columns(n, kPanelColumns);
  float* left = scratch.take<float>(kLeftPanelFloats);
  float* right[2] = {scratch.take<float>(kDepthBlock * kPanelColumns),
                     scratch.take<float>(kDepthBlock * kPanelColumns)};
  const auto block_of_right = [&](const Operand& x, int64_t column, int64_t d) {
    return x.block(depth.begin(d), depth.length(d), columns.begin(column), columns.length(column));
  };
  const int64_t strips = (m + kernel.rows - 1) / kernel.rows;
  PanelPacker(block_of_right(b, 0, 0), bf16, right[0], 1).pack_all();
  for (int64_t j = 0; j < columns.count(); ++j) {
    for (int64_t d = 0; d < depth.count(); ++d) {
      const int64_t p = depth.begin(d), k = depth.length(d), width = columns.length(j);
      const Panel panel{right[0], kernel.lanes, k * kernel.lanes, width, c + columns.begin(j), ldc};
      const int64_t calls = strips * ((width + kernel.lanes - 1) / kernel.lanes);
      PanelPacker packer;
      Fetch next;
      if (d + 1 < depth.count()) {
        packer = PanelPacker(block_of_right(b, j, d + 1), bf16, right[1], calls);
      } else if (j + 1 < columns.count()) {
        packer = PanelPacker(block_of_right(b, j + 1, 0), bf16, right[1], calls);
      } else if (coming) {
        const Blocks rows(coming->rows(), kDepthBlock), cols(coming->cols(), kPanelColumns);
        next = Fetch(coming->block(0, rows.step, 0, cols.step), coming->transposed);
      }
      multiply_strips(kernel, a.block(0, m, p, k), bf16, panel, accumulate || d > 0, left,
                      kLeftPanelFloats, packer, next);
      std::swap(right[0], right[1]);
    }
  }
}

using Implementations = std::vector<const ProductImplementation*>;

/// Those that this machine has. The log says which are missing, and why.
Implementations usable(std::span<const ProductImplementation* const> list) {
  Implementations there;
  for (const ProductImplementation* one : list) {
    const std::string reason = one->missing();
    if (reason.empty()) {
      there.push_back(one);
    } else {
      say_declined(log_line, one->name(), reason);
    }
  }
  return there;
}

std::span<const ProductImplementation* const> usable_implementations(bool bf16) {
  if (bf16) {  // two variables: a run in f32 is not told what bf16 would need
    static const Implementations there = usable(product_implementations(true));
    return there;
  }
  static const Implementations there = usable(product_implementations(false));
  return there;
}

}  // namespace

std::span<const ProductImplementation* const> product_implementations(bool bf16) {
  static const OnednnProducts onednn;
  static const ProductsInPlace in_place;
  static const PackedProducts packed;
  static const std::array<const ProductImplementation*, 2> of_bf16 = {&onednn, &packed};
  static const std::array<const ProductImplementation*, 2> of_f32 = {&in_place, &packed};
  return bf16 ? of_bf16 : of_f32;
}

void multiply(Scratch& scratch, bool bf16, const Operand& a, const Operand& b, float* c,
              int64_t ldc, bool accumulate, const Operand* coming) {
  HEARTH_CHECK(a.cols() == b.rows(), "product: shapes");
  if (a.rows() == 0) return;
  if (a.cols() == 0) {
    if (!accumulate) clear(c, ldc, a.rows(), b.cols());
    return;
  }
  const MatrixProduct product{bf16, a, b, c, ldc, accumulate, coming};
  // Shapes decline in every run, so nothing is said of them.
  choose(usable_implementations(bf16), {}, product)->run(scratch, product);
}

bool multiply_keeps_rows_apart(bool bf16) {
  return std::ranges::all_of(usable_implementations(bf16), [](const ProductImplementation* one) {
    return one->keeps_rows_apart();
  });
}

namespace {

enum class Bf16Products : uint8_t { as_here, there, missing };
std::atomic<Bf16Products> assumed_products{Bf16Products::as_here};

}  // namespace

void assume_bf16_products(std::optional<bool> there) {
  assumed_products = !there   ? Bf16Products::as_here
                     : *there ? Bf16Products::there
                              : Bf16Products::missing;
}

std::optional<bool> assumed_bf16_products() {
  const Bf16Products assumed = assumed_products;
  if (assumed == Bf16Products::as_here) return std::nullopt;
  return assumed == Bf16Products::there;
}

size_t multiply_scratch() {
  const std::optional<bool> assumed = assumed_bf16_products();
  const auto usable = [&](const ProductImplementation& one) {
    return assumed && one.needs_bf16_products() ? *assumed : one.missing().empty();
  };
  size_t bytes = 0;
  for (const bool bf16 : {false, true}) {
    for (const ProductImplementation* one : product_implementations(bf16)) {
      if (usable(*one)) bytes = std::max(bytes, one->scratch_bytes());
    }
  }
  return bytes;
}

}  // namespace hearth
