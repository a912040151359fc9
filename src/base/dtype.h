// Element types and their conversions. Rounding is to nearest, ties to even, like the hardware.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// Element type of a tensor. Three types are independent: the stored type of a parameter, the
/// compute type of products (`Compute`, ops/op_set.h) and the type on a wire.
enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8 };

constexpr size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

/// "f32", "bf16", ... as used in options, tables and messages.
std::string_view name_of(DType type);

/// The 16-bit brain float: the upper half of an f32.
struct bf16 {
  uint16_t bits = 0;
};

/// IEEE half precision.
struct f16 {
  uint16_t bits = 0;
};

constexpr float to_float(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

constexpr bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};  // NaN
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

/// x rounded to the nearest bf16, as a float.
constexpr float round_to_bf16(float x) { return to_float(to_bf16(x)); }

float to_float(f16 x);
f16 to_f16(float x);

/// The DType of a C++ element type.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}

/// Converts n elements between floating types. In place only if the types are equal. Runs on the
/// calling thread.
void convert(DType from, const void* source, DType to, void* target, int64_t n);

}  // namespace hearth
