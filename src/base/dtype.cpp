#include "base/dtype.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace hearth {

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "?";
}

float to_float(f16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t exponent = x.bits >> 10 & 0x1fu;
  const uint32_t fraction = x.bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in f32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 0x1f ? 0xffu : exponent + 112;  // bias 127 - 15
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

f16 to_f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  const auto with_sign = [sign](uint32_t bits) { return f16{static_cast<uint16_t>(sign | bits)}; };
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN
  if (magnitude >= 0x47800000u) return with_sign(0x7c00u);  // 2^16 and above: infinity
  if (magnitude >= 0x38800000u) {                           // normal in f16: 2^-14 and above
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return with_sign((rounded >> 13) - (112u << 10));  // a carry into the exponent is right
  }
  if (magnitude < 0x33000000u) return with_sign(0);  // below 2^-25
  // Subnormal: the significand in units of 2^-24, rounded to nearest even.
  const uint32_t shift = 126 - (magnitude >> 23);
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t half = 1u << (shift - 1);
  return with_sign((significand + half - 1 + (significand >> shift & 1u)) >> shift);
}

namespace {

// f64 to a 16-bit type must round once: to f32 with the last bit made odd when inexact ("round to
// odd"), so that the second rounding sees that something was cut off.
float narrow_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || !std::isfinite(x)) return nearest;
  uint32_t u = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(x)) --u;  // towards zero; also from infinity to the largest
  return std::bit_cast<float>(u | 1u);
}

template <class To, class From>
To cast(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16>) {
    return cast<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) {
    float narrow;
    if constexpr (std::is_same_v<From, double>) {
      narrow = narrow_to_odd(x);
    } else {
      narrow = x;
    }
    if constexpr (std::is_same_v<To, bf16>) {
      return to_bf16(narrow);
    } else {
      return to_f16(narrow);
    }
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_run(const void* source, void* target, int64_t n) {
  const auto* from = static_cast<const From*>(source);
  auto* to = static_cast<To*>(target);
  for (int64_t i = 0; i < n; ++i) to[i] = cast<To>(from[i]);
}

template <class From>
void convert_from(const void* source, DType to, void* target, int64_t n) {
  switch (to) {
    case DType::f64: return convert_run<From, double>(source, target, n);
    case DType::f32: return convert_run<From, float>(source, target, n);
    case DType::bf16: return convert_run<From, bf16>(source, target, n);
    case DType::f16: return convert_run<From, f16>(source, target, n);
    default: HEARTH_CHECK(false, "convert: target is no floating type");
  }
}

}  // namespace

void convert(DType from, const void* source, DType to, void* target, int64_t n) {
  if (from == to) {
    if (n > 0) std::memmove(target, source, static_cast<size_t>(n) * size_of(from));
    return;
  }
  switch (from) {
    case DType::f64: return convert_from<double>(source, to, target, n);
    case DType::f32: return convert_from<float>(source, to, target, n);
    case DType::bf16: return convert_from<bf16>(source, to, target, n);
    case DType::f16: return convert_from<f16>(source, to, target, n);
    default: HEARTH_CHECK(false, "convert: source is no floating type");
  }
}

}  // namespace hearth
