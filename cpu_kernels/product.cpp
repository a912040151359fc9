#include "cpu_kernels/product.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "cpu_kernels/micro_kernel.h"
#include "cpu_kernels/onednn_shim.h"
#include "cpu_kernels/tile_product.h"
#include "ops/implementations.h"

namespace hearth {
namespace {

constexpr int64_t kLine = 64;                              // bytes of a cache line
constexpr int64_t kPanelFloats = 384 * (256 + kMostTail);  // of all kernels
// Strips of A that are packed together where it is transposed: 20 of 14 rows.
constexpr int64_t kLeftPanelFloats = 20 * 16 * (kDepthBlock + kMostTail + 1);

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
// of lines of some rows, a row for every two steps, or, where rows are few and long, 16 lines of some
// rows.
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

  // For a kernel of so many steps.
  Lines next(int64_t steps) {
    if (done()) return {};
    const std::byte* at = data_ + row_at_ * row_ + line_at_ * kLine;
    if (!long_) {
      if (++line_at_ == lines_) {
        line_at_ = 0;
        row_at_ += 16 * std::max<int64_t>(1, steps / 32);
      }
      return {at, row_, 16 * row_};
    }
    line_at_ += 16;
    if (line_at_ >= lines_) {
      line_at_ = 0;
      row_at_ += std::max<int64_t>(1, steps / 32);
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
  // In at most some `calls` pieces, and one for the tail, which may have no rows.
  PanelPacker(const MicroKernel& kernel, const Operand& b, const Operand& tail, bool round,
              float* target, int64_t calls)
      : kernel_(&kernel),
        b_(b),
        tail_(tail),
        round_(round),
        target_(target),
        strip_((kernel.steps(b.rows()) + kernel.steps(tail.rows())) * kernel.lanes) {
    const int64_t k = b.rows();
    if (b.transposed) {
      const int64_t pieces = std::max<int64_t>(1, calls / ((b.cols() + kUnit - 1) / kUnit));
      const int64_t whole = 16 * kernel.depth;
      depth_ = ((k + pieces - 1) / pieces + whole - 1) / whole * whole;
      columns_ = kUnit;
    } else {
      depth_ = kernel.steps((k + calls - 1) / calls) * kernel.depth;
      columns_ = b.cols();
    }
  }

  bool done() const { return column_ >= b_.cols() && tail_.rows() == 0; }

  // The next piece: rows are long where B is transposed, and read some columns at a time.
  Lines ahead() const {
    if (b_.index || column_ >= b_.cols()) return {};
    const ConstView piece = next().memory;
    const auto row = piece.stride * static_cast<int64_t>(size_of(piece.dtype));
    const auto* at = static_cast<const std::byte*>(piece.data);
    return b_.transposed ? Lines{at, row, kLine} : Lines{at, kLine, row};
  }

  void pack_all() {
    while (!done()) pack();
  }

  void pack() {
    const int64_t lanes = kernel_->lanes;
    if (column_ >= b_.cols()) {
      kernel_->pack_right(tail_, round_, strip_, target_ + kernel_->steps(b_.rows()) * lanes);
      tail_ = ConstView();
      return;
    }
    kernel_->pack_right(
        next(), round_, strip_,
        target_ + column_ / lanes * strip_ + column_ % lanes + row_ / kernel_->depth * lanes);
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

  const MicroKernel* kernel_ = nullptr;
  Operand b_ = ConstView(), tail_ = ConstView();
  bool round_ = false;
  float* target_ = nullptr;
  int64_t strip_ = 0;
  int64_t depth_ = 0, columns_ = 0;  // of a piece
  int64_t row_ = 0, column_ = 0;     // where the next piece begins
};

// Strips of A are packed when their turn comes; each stays in the first cache while all strips of B,
// which stream from the second, are multiplied by it. The next ones, and what B holds next, are on
// their way from memory meanwhile.
void multiply_strips(const MicroKernel& kernel, const Operand& a, const Operand& tail, bool round,
                     const Panel& panel, bool add, float* left, int64_t left_floats,
                     PanelPacker packer, Fetch right) {
  const int64_t m = a.rows(), k = a.cols(), own_steps = kernel.steps(k);
  const int64_t steps = own_steps + kernel.steps(tail.cols()), strip = kernel.left_strip(steps);
  const bool by_rows = !a.transposed;
  const int64_t strips = (m + kernel.rows - 1) / kernel.rows;
  // As even as can be, `wide` of them one row more than the rest: few rows leave the units idle.
  const int64_t narrow = m / strips, wide = m - narrow * strips;
  // Columns of A that stand as rows are read in pieces of some strips, rows one strip at a time.
  const int64_t group = a.transposed ? left_floats / strip : 1;
  for (int64_t s = 0, i = 0; s < strips;) {
    const int64_t rows = s < wide ? narrow + 1 : narrow;
    const int64_t some = std::min(group, (s < wide ? wide : strips) - s);
    kernel.pack_left(a.block(i, some * rows, 0, k), round, rows, strip, left);
    if (tail.cols() > 0) {
      kernel.pack_left(tail.block(i, some * rows, 0, tail.cols()), round, rows, strip,
                       left + own_steps * (by_rows ? 1 : kernel.left_stride));
    }
    const int64_t after = i + some * rows;
    const Operand next = a.block(after, std::min(group * rows, m - after), 0, k);
    Fetch fetch(next, !a.transposed);
    for (int64_t l = 0; l < some; ++l, ++s, i += rows) {
      for (int64_t j = 0; j < panel.n; j += kernel.lanes) {
        const Ahead ahead{!packer.done() ? packer.ahead() : right.next(steps),
                          !fetch.done() ? fetch.next(steps) : right.next(steps)};
        kernel.run(rows, std::min<int64_t>(kernel.lanes, panel.n - j), steps, left + l * strip,
                   by_rows, panel.strips + j / kernel.lanes * panel.step, panel.ld,
                   panel.c + i * panel.ldc + j, panel.ldc, add, ahead);
        if (!packer.done()) packer.pack();
      }
    }
  }
  packer.pack_all();
}

// Either way A lies in `left`: many strips by steps, or one by rows.
static_assert(kDepthBlock + kMostTail <= kMostSteps);
static_assert(std::min(kLeftFloats, kLeftPanelFloats) >= 14 * kLeftRow);

}  // namespace

Blocks::Blocks(int64_t n, int64_t largest) : size(n) {
  if (n == 0) return;
  const int64_t blocks = (n + largest - 1) / largest;
  step = ((n + blocks - 1) / blocks + 15) / 16 * 16;
}

SmallRight right_in_place(const float* b, int64_t k, int64_t n, int64_t ld) {
  return {b, k, n, ld, micro_kernel().lanes, false};
}

SmallRight right_in_pairs(const Operand& b, float* packed) {
  if (onednn_has_amx()) return tile_right(b, packed);
  const MicroKernel& kernel = kAvx512Bf16Kernel;
  const int64_t strip = kernel.steps(b.rows()) * kernel.lanes;
  kernel.pack_right(b, true, strip, packed);
  return {packed, b.rows(), b.cols(), kernel.lanes, strip, true};
}

bool has_small_pairs(int64_t k) {
  return onednn_has_fast_bf16() && k <= std::min(kTileSmallDepth, 2 * kMostSteps);
}

void multiply_small(const Operand& a, const SmallRight& b, float* c, int64_t ldc, bool accumulate,
                    float* left) {
  const int64_t m = a.rows();
  HEARTH_CHECK(a.cols() == b.k, "product: shapes");
  if (m == 0) return;
  if (b.pairs && onednn_has_amx()) {
    tile_multiply_small(a, b, c, ldc, accumulate, left);
    return;
  }
  if (b.pairs) {
    const Panel panel{b.data, b.ld, b.step, b.n, c, ldc};
    multiply_strips(kAvx512Bf16Kernel, a, ConstView(), true, panel, accumulate, left, kLeftFloats,
                    {}, {});
    return;
  }
  const Blocks depth(b.k, kDepthBlock);
  if (depth.size == 0 && !accumulate) clear(c, ldc, m, b.n);
  for (int64_t d = 0; d < depth.count(); ++d) {
    const int64_t p = depth.begin(d);
    const Panel panel{b.data + p * b.ld, b.ld, b.step, b.n, c, ldc};
    multiply_strips(micro_kernel(), a.block(0, m, p, depth.length(d)), ConstView(), false, panel,
                    accumulate || d > 0, left, kLeftFloats, {}, {});
  }
}

namespace {

std::string without_bf16_products() {
  return onednn_has_fast_bf16() ? "" : onednn_isa() + " has no bf16 products";
}

/// oneDNN's products. Those of bf16 need a bf16 instruction set to be fast.
class OnednnProducts final : public ProductImplementation {
 public:
  explicit OnednnProducts(bool bf16) : bf16_(bf16) {}
  std::string_view name() const override { return "oneDNN"; }
  std::string missing() const override { return bf16_ ? without_bf16_products() : ""; }
  void run(Scratch& scratch, const MatrixProduct& p) const override {
    onednn_multiply(scratch, bf16_, p.a, p.b, p.c, p.ldc, p.accumulate);
  }
  size_t scratch_bytes() const override { return onednn_multiply_scratch(); }

 private:
  const bool bf16_;
};

/// On AMX tiles, whose kernels have loops of their own.
class TileProducts final : public ProductImplementation {
 public:
  std::string_view name() const override { return "packed tiles"; }
  std::string missing() const override {
    return onednn_has_amx() ? "" : onednn_isa() + " has no bf16 tiles";
  }
  bool takes_tail() const override { return true; }
  void run(Scratch& scratch, const MatrixProduct& product) const override {
    tile_multiply(scratch, product);
  }
  size_t scratch_bytes() const override { return tile_multiply_scratch(); }
};

size_t packed_scratch() {
  constexpr int64_t packed = kLeftPanelFloats + 2 * kPanelFloats;
  return sizeof(float) * static_cast<size_t>(packed) + 3 * kArenaAlignment;
}

/// Both operands are packed into strips of the kernel, block by block.
class PackedProducts : public ProductImplementation {
 public:
  bool takes_tail() const override { return true; }
  void run(Scratch& scratch, const MatrixProduct& product) const override;
  size_t scratch_bytes() const override { return packed_scratch(); }

 private:
  virtual const MicroKernel& kernel() const = 0;
};

/// The multiplications are f32, of operands that were rounded before if the product is bf16.
class PackedF32Products final : public PackedProducts {
 public:
  std::string_view name() const override { return "packed f32"; }

 private:
  const MicroKernel& kernel() const override { return micro_kernel(); }
};

/// The multiplications are those of AVX512_BF16.
class PackedBf16Products final : public PackedProducts {
 public:
  std::string_view name() const override { return "packed bf16"; }
  std::string missing() const override { return without_bf16_products(); }

 private:
  const MicroKernel& kernel() const override { return kAvx512Bf16Kernel; }
};

void PackedProducts::run(Scratch& scratch, const MatrixProduct& product) const {
  const bool bf16 = product.bf16, accumulate = product.accumulate;
  const Operand &a = product.a, &b = product.b;
  const Tail& tail = product.tail;
  float* const c = product.c;
  const int64_t ldc = product.ldc;
  const Operand* const coming = product.coming;
  const MicroKernel& kernel = this->kernel();
  const int64_t m = a.rows(), n = b.cols();
  Scratch::Frame frame(scratch);
  const int64_t most_depth = kernel.depth * kernel.panel_steps;
  const Blocks depth(a.cols(), most_depth), columns(n, kernel.panel_columns);
  float* left = scratch.take<float>(kLeftPanelFloats);
  float* right[2] = {scratch.take<float>(kPanelFloats), scratch.take<float>(kPanelFloats)};
  // The tail follows the last block of k.
  const auto tail_columns = [&](int64_t d) { return d + 1 == depth.count() ? tail.a.cols() : 0; };
  const auto packer_of = [&](int64_t column, int64_t d, float* to, int64_t calls) {
    const int64_t begin = columns.begin(column), width = columns.length(column);
    const int64_t more = tail_columns(d);
    return PanelPacker(kernel, b.block(depth.begin(d), depth.length(d), begin, width),
                       more > 0 ? tail.b.block(0, more, begin, width) : ConstView(), bf16, to,
                       calls);
  };
  const int64_t strips = (m + kernel.rows - 1) / kernel.rows;
  packer_of(0, 0, right[0], 1).pack_all();
  for (int64_t j = 0; j < columns.count(); ++j) {
    for (int64_t d = 0; d < depth.count(); ++d) {
      const int64_t p = depth.begin(d), k = depth.length(d), width = columns.length(j);
      const int64_t steps = kernel.steps(k) + kernel.steps(tail_columns(d));
      const Panel panel{right[0], kernel.lanes,         steps * kernel.lanes,
                        width,    c + columns.begin(j), ldc};
      const int64_t calls = strips * ((width + kernel.lanes - 1) / kernel.lanes);
      PanelPacker packer;
      Fetch next;
      if (d + 1 < depth.count()) {
        packer = packer_of(j, d + 1, right[1], calls);
      } else if (j + 1 < columns.count()) {
        packer = packer_of(j + 1, 0, right[1], calls);
      } else if (coming) {
        const Blocks rows(coming->rows(), most_depth), cols(coming->cols(), kernel.panel_columns);
        next = Fetch(coming->block(0, rows.step, 0, cols.step), coming->transposed);
      }
      multiply_strips(kernel, a.block(0, m, p, k), tail.a.block(0, m, 0, tail_columns(d)), bf16,
                      panel, accumulate || d > 0, left, kLeftPanelFloats, packer, next);
      std::swap(right[0], right[1]);
    }
  }
}

/// The first that is not missing. The log says which are missing before it, and why.
const ProductImplementation& first_of(std::span<const ProductImplementation* const> list) {
  for (const ProductImplementation* one : list) {
    const std::string reason = one->missing();
    if (reason.empty()) return *one;
    say_declined(log_line, one->name(), reason);
  }
  HEARTH_CHECK(false, "product: no implementation");
}

const ProductImplementation& preferred(bool bf16) {
  if (bf16) {  // two variables: a run in f32 is not told what bf16 would need
    static const ProductImplementation& first = first_of(product_implementations(true));
    return first;
  }
  static const ProductImplementation& first = first_of(product_implementations(false));
  return first;
}

}  // namespace

std::span<const ProductImplementation* const> product_implementations(bool bf16) {
  static const OnednnProducts library_bf16(true), library_f32(false);
  static const TileProducts packed_tiles;
  static const PackedBf16Products packed_bf16;
  static const PackedF32Products packed_f32;
  // The orders follow from the rates in docs/benchmarks/ops-cpu.md. Tiles come last where there are
  // none, so that no run is told about them.
  using List = std::array<const ProductImplementation*, 4>;
  static const List of_bf16 = onednn_has_amx()
                                  ? List{&packed_tiles, &packed_bf16, &library_bf16, &packed_f32}
                                  : List{&packed_bf16, &library_bf16, &packed_f32, &packed_tiles};
  static const std::array<const ProductImplementation*, 2> of_f32 = {&packed_f32, &library_f32};
  if (bf16) return of_bf16;
  return of_f32;
}

void multiply(Scratch& scratch, const MatrixProduct& product) {
  const auto& [bf16, a, b, c, ldc, accumulate, tail, coming] = product;
  HEARTH_CHECK(a.cols() == b.rows() && tail.a.cols() == tail.b.rows(), "product: shapes");
  HEARTH_CHECK(!tail || tail.a.transposed == a.transposed, "product: a tail lies as A does");
  if (a.rows() == 0) return;
  if (a.cols() == 0) {
    HEARTH_CHECK(!tail, "product: a tail of nothing");
    if (!accumulate) clear(c, ldc, a.rows(), b.cols());
    return;
  }
  const ProductImplementation& one = preferred(bf16);
  if (!tail || (one.takes_tail() && tail.a.cols() <= kMostTail)) {
    one.run(scratch, product);
    return;
  }
  one.run(scratch, {bf16, a, b, c, ldc, accumulate, {}, coming});
  multiply(scratch, {bf16, tail.a, tail.b, c, ldc, true});
}

namespace {

constexpr uint8_t kAsHere = 255;
std::atomic<uint8_t> assumed_products{kAsHere};

}  // namespace

void assume_bf16_products(std::optional<bool> there) {
  assumed_products = there ? static_cast<uint8_t>(*there) : kAsHere;
}

bool has_bf16_products() {
  const uint8_t assumed = assumed_products;
  return assumed == kAsHere ? onednn_has_fast_bf16() : assumed != 0;
}

size_t multiply_scratch() {
  return std::max(packed_scratch(), tile_multiply_scratch());  // f32 and pairs take the same
}

}  // namespace hearth
