// Packs operands into strips; compiled once per instruction set, like micro_kernel_body.h. Private
// to micro_kernel_*.cpp. A lane of a strip has Vector::kDepth neighbours along k; zeros follow the
// last of an odd number.

namespace {

constexpr int64_t kDepth = Vector::kDepth;

// Reads vectors of a stored type as lanes; with kRound, rounded to bf16.
template <class T, bool kRound>
struct Reader {
  using Element = T;
  HEARTH_TARGET static Vector::Register load(const T* p) {
    if constexpr (kRound) {
      return Vector::round(Vector::read(p));
    } else {
      return Vector::read(p);
    }
  }
  // The first n elements, then zeros.
  HEARTH_TARGET static Vector::Register load(const T* p, int64_t n) {
    T part[Vector::kLanes * kDepth] = {};
    std::memcpy(part, p, static_cast<size_t>(n) * sizeof(T));
    return load(part);
  }
  // Lanes of one column each, of kDepth rows; `second` is null after the last row.
  HEARTH_TARGET static Vector::Register load_columns(const T* first, const T* second) {
    const auto x = Vector::zip(first, second);
    return kRound ? Vector::round(x) : x;
  }
  HEARTH_TARGET static Vector::Register load_columns(const T* first, const T* second, int64_t n) {
    T parts[2][Vector::kLanes] = {};
    std::memcpy(parts[0], first, static_cast<size_t>(n) * sizeof(T));
    if (second != nullptr) std::memcpy(parts[1], second, static_cast<size_t>(n) * sizeof(T));
    return load_columns(parts[0], parts[1]);
  }
};

// Lane i of target + p * target_stride becomes element p of source[first + i], for i < m <= kLanes,
// p < k; with kDepth = 2, elements 2 p and 2 p + 1. Writes a whole vector for each p. Reads each
// cache line of the source once, even if rows share cache sets.
template <class R>
HEARTH_TARGET void transpose_rows(const OperandRows<typename R::Element>& source, int64_t first,
                                  int64_t m, int64_t k, float* target, int64_t target_stride) {
  constexpr int kLanes = Vector::kLanes;
  Vector::Register r[kLanes];
  const typename R::Element* row[kLanes];
  for (int i = 0; i < kLanes; ++i) row[i] = source[first + (i < m ? i : m - 1)];
  int64_t p = 0;
  for (; p + kLanes * kDepth <= k; p += kLanes * kDepth, target += kLanes * target_stride) {
    HEARTH_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) r[i] = R::load(row[i] + p);
    Vector::transpose(r);
    HEARTH_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) Vector::store(target + i * target_stride, r[i]);
  }
  if (p == k) return;
  for (int i = 0; i < kLanes; ++i) r[i] = R::load(row[i] + p, k - p);
  Vector::transpose(r);
  for (int i = 0; i * kDepth < k - p; ++i) Vector::store(target + i * target_stride, r[i]);
}

// Rows to prefetch ahead: each row has too few cache lines for the hardware prefetcher.
constexpr int64_t kRowsAhead = 4;

// Copies strips of `width` columns of a source [k, n], row by row. A strip has `vectors` vectors
// per row; strips are `strip` floats apart. Reads each row of the source in one pass.
template <class R>
HEARTH_TARGET void copy_columns(const OperandRows<typename R::Element>& source, int64_t k,
                                int64_t n, int64_t width, int64_t vectors, int64_t strip,
                                float* target) {
  constexpr int64_t kLanes = Vector::kLanes;
  for (int64_t p = 0; p < k; p += kDepth, target += vectors * kLanes) {
    const typename R::Element* from = source[p];
    const typename R::Element* second = kDepth == 2 && p + 1 < k ? source[p + 1] : nullptr;
    const auto ahead =
        (source.index(p + kRowsAhead < k ? p + kRowsAhead : p) - source.index(p)) * source.stride;
    float* to = target;
    for (int64_t c = 0; c < n; c += width, to += strip) {
      for (int64_t v = 0; v < vectors; ++v) {
        const int64_t left = n - c - v * kLanes;
        if (left <= 0) break;
        const int64_t column = c + v * kLanes;
        const auto* at = from + column;
        const auto* below = second != nullptr ? second + column : nullptr;
        __builtin_prefetch(at + ahead);
        if (below != nullptr) __builtin_prefetch(below + ahead);
        Vector::store(to + v * kLanes, left >= kLanes ? R::load_columns(at, below)
                                                      : R::load_columns(at, below, left));
      }
    }
  }
}

template <class R>
HEARTH_TARGET void pack_left_as(const Operand& a, int64_t rows, int64_t strip, float* target) {
  const OperandRows<typename R::Element> source(a);
  const int64_t m = a.rows(), k = a.cols();
  if (a.transposed) return copy_columns<R>(source, k, m, rows, 1, strip, target);
  constexpr int64_t kWhole = Vector::kLanes * kDepth;
  for (int64_t i = 0; i < m; ++i) {
    const typename R::Element* from = source[i];
    float* to = target + i / rows * strip + i % rows * kLeftRow;
    int64_t p = 0;
    for (; p + kWhole <= k; p += kWhole) Vector::store(to + p / kDepth, R::load(from + p));
    if (p < k) Vector::store(to + p / kDepth, R::load(from + p, k - p));
  }
}

template <class R>
HEARTH_TARGET void pack_right_as(const Operand& b, int64_t strip, float* target) {
  const OperandRows<typename R::Element> source(b);
  constexpr int64_t kLanes = 2 * Vector::kLanes;
  const int64_t k = b.rows(), n = b.cols();
  if (!b.transposed) return copy_columns<R>(source, k, n, kLanes, 2, strip, target);
  for (int64_t c = 0; c < n; c += Vector::kLanes) {
    transpose_rows<R>(source, c, std::min<int64_t>(Vector::kLanes, n - c), k,
                      target + c / kLanes * strip + c % kLanes, kLanes);
  }
}

// bf16 is never rounded again.
void pack_left(const Operand& a, bool round, int64_t rows, int64_t strip, float* target) {
  switch (a.memory.dtype) {
    case DType::f32:
      return round ? pack_left_as<Reader<float, true>>(a, rows, strip, target)
                   : pack_left_as<Reader<float, false>>(a, rows, strip, target);
    case DType::bf16: return pack_left_as<Reader<bf16, false>>(a, rows, strip, target);
    case DType::f16:
      return round ? pack_left_as<Reader<f16, true>>(a, rows, strip, target)
                   : pack_left_as<Reader<f16, false>>(a, rows, strip, target);
    default: HEARTH_CHECK(false, "product: operands are f32, bf16 or f16");
  }
}

void pack_right(const Operand& b, bool round, int64_t strip, float* target) {
  switch (b.memory.dtype) {
    case DType::f32:
      return round ? pack_right_as<Reader<float, true>>(b, strip, target)
                   : pack_right_as<Reader<float, false>>(b, strip, target);
    case DType::bf16: return pack_right_as<Reader<bf16, false>>(b, strip, target);
    case DType::f16:
      return round ? pack_right_as<Reader<f16, true>>(b, strip, target)
                   : pack_right_as<Reader<f16, false>>(b, strip, target);
    default: HEARTH_CHECK(false, "product: operands are f32, bf16 or f16");
  }
}

}  // namespace
