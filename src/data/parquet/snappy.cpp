#include "data/parquet/snappy.h"

#include <cstdint>
#include <cstring>

namespace hearth {
namespace {

// A copy of 64 bytes takes 3.
constexpr size_t kDensest = 22;

/// Takes a little-endian number of `bytes` bytes from the front.
bool take_number(std::string_view& packed, size_t bytes, size_t& number) {
  if (packed.size() < bytes) return false;
  number = 0;
  for (size_t i = 0; i < bytes; ++i) {
    number |= static_cast<size_t>(static_cast<uint8_t>(packed[i])) << (8 * i);
  }
  packed.remove_prefix(bytes);
  return true;
}

bool take_size(std::string_view& packed, size_t& size) {
  size = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    size_t piece = 0;
    if (!take_number(packed, 1, piece)) return false;
    size |= (piece & 0x7f) << shift;
    if (piece < 0x80) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> unpack_snappy(std::string_view packed, size_t size) {
  size_t declared = 0;
  if (!take_size(packed, declared) || declared != size || size / kDensest > packed.size()) {
    return std::nullopt;
  }
  std::string text(size, '\0');
  size_t done = 0;
  while (!packed.empty()) {
    size_t tag = 0, length = 0, offset = 0;
    take_number(packed, 1, tag);
    switch (tag & 3) {
      case 0: {  // bytes as they are
        length = tag >> 2;
        if (length >= 60 && !take_number(packed, length - 59, length)) return std::nullopt;
        ++length;
        if (length > packed.size() || length > size - done) return std::nullopt;
        std::memcpy(text.data() + done, packed.data(), length);
        packed.remove_prefix(length);
        done += length;
        continue;
      }
      case 1:
        length = (tag >> 2 & 7) + 4;
        if (!take_number(packed, 1, offset)) return std::nullopt;
        offset |= tag >> 5 << 8;
        break;
      default:
        length = (tag >> 2) + 1;
        if (!take_number(packed, (tag & 3) == 2 ? 2 : 4, offset)) return std::nullopt;
    }
    if (offset == 0 || offset > done || length > size - done) return std::nullopt;
    // A copy may overlap its own result: then it repeats.
    for (size_t i = 0; i < length; ++i, ++done) text[done] = text[done - offset];
  }
  if (done != size) return std::nullopt;
  return text;
}

}  // namespace hearth
