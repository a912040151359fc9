// Element types of GGUF files, as ggml stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth {

/// The numbers are those of the format (ggml_type).
enum class GgufType : uint32_t { f32 = 0, f16 = 1, q8_0 = 8, bf16 = 30 };

/// Elements of a q8_0 block: 32 values and one f16 scale, in 34 bytes. A row holds whole blocks.
inline constexpr int64_t kGgufBlock = 32;

/// "f32", "q8_0", ... as in options and messages.
std::string_view name_of(GgufType type);

/// Bytes of n elements; for q8_0 n is a multiple of kGgufBlock.
uint64_t gguf_bytes(GgufType type, int64_t n);

/// Stores n finite values as the type, at `out`. Returns the index of the first element that is not
/// finite as this type (for q8_0: of a block whose scale is not); n if there is none.
///
/// f16 and bf16 round to nearest, ties to even. q8_0 is ggml's quantize_row_q8_0_ref: the scale is
/// the largest magnitude / 127, and each value / scale is rounded, halves away from zero.
int64_t to_gguf(GgufType type, const float* values, int64_t n, std::byte* out);

}  // namespace hearth
