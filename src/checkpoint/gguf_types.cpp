#include "checkpoint/gguf_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype.h"
#include "model/weight_copy.h"

namespace hearth {
namespace {

constexpr int64_t kBlockBytes = 2 + kGgufBlock;

/// Returns whether the scale is finite as f16.
bool quantize_block(const float* values, std::byte* out) {
  float largest = 0;
  for (int64_t i = 0; i < kGgufBlock; ++i) largest = std::max(largest, std::fabs(values[i]));
  const float scale = largest / 127.0f;
  // The inverse of a tiny scale is infinite. As f16 that scale is 0, so the block is zeros.
  float inverse = scale > 0 ? 1.0f / scale : 0.0f;
  if (!std::isfinite(inverse)) inverse = 0;
  const f16 stored = to_f16(scale);
  std::memcpy(out, &stored.bits, 2);
  for (int64_t i = 0; i < kGgufBlock; ++i) {
    const float scaled = values[i] * inverse;
    out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(std::round(scaled)));
  }
  return std::isfinite(to_float(stored));
}

DType plain_type(GgufType type) {
  return type == GgufType::f16 ? DType::f16 : type == GgufType::bf16 ? DType::bf16 : DType::f32;
}

}  // namespace

std::string_view name_of(GgufType type) {
  return type == GgufType::q8_0 ? "q8_0" : name_of(plain_type(type));
}

uint64_t gguf_bytes(GgufType type, int64_t n) {
  if (type == GgufType::q8_0) return static_cast<uint64_t>(n / kGgufBlock * kBlockBytes);
  return static_cast<uint64_t>(n) * size_of(plain_type(type));
}

int64_t to_gguf(GgufType type, const float* values, int64_t n, std::byte* out) {
  if (type != GgufType::q8_0) {
    convert(DType::f32, values, plain_type(type), out, n);
    return find_not_finite(plain_type(type), out, n);
  }
  int64_t bad = n;
  for (int64_t at = 0; at < n; at += kGgufBlock, out += kBlockBytes) {
    if (!quantize_block(values + at, out)) bad = std::min(bad, at);
  }
  return bad;
}

}  // namespace hearth
