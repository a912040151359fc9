#include "data/tokenizer/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace hearth {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

constexpr std::array<uint32_t, 256> make_alphabet() {
  std::array<uint32_t, 256> characters{};
  uint32_t next = kFirstStandIn;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    characters[byte] = stands_for_itself(byte) ? byte : next++;
  }
  return characters;
}

constexpr std::array<uint32_t, 256> kAlphabet = make_alphabet();

// All characters lie below kFirstStandIn + 256; -1 where none stands for a byte.
constexpr std::array<int, 512> make_inverse() {
  std::array<int, 512> bytes{};
  for (int& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kAlphabet[byte]] = byte;
  return bytes;
}

constexpr std::array<int, 512> kInverse = make_inverse();

}  // namespace

std::string alphabet_character(uint8_t byte) {
  const uint32_t code = kAlphabet[byte];
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char character = decode_utf8(text);
    if (character.length == 0 || character.code >= kInverse.size() ||
        kInverse[character.code] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kInverse[character.code]));
    text.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace hearth
