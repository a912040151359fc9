#include "model/weight_copy.h"

#include <cstring>

namespace hearth {
namespace {

// Of data at any address: the header before them may have any length.
template <class Bits>
int64_t find_full_exponent(const void* data, int64_t n, Bits exponent) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    if ((bits & exponent) == exponent) return i;
  }
  return n;
}

}  // namespace

int64_t find_not_finite(DType type, const void* data, int64_t n) {
  switch (type) {
    case DType::f64: return find_full_exponent<uint64_t>(data, n, uint64_t{0x7ff} << 52);
    case DType::f32: return find_full_exponent<uint32_t>(data, n, 0x7f800000u);
    case DType::bf16: return find_full_exponent<uint16_t>(data, n, 0x7f80u);
    case DType::f16: return find_full_exponent<uint16_t>(data, n, 0x7c00u);
    default: return n;
  }
}

}  // namespace hearth
