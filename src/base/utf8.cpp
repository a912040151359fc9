#include "base/utf8.h"

namespace hearth {

Utf8Char decode_utf8(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};

  size_t length = 0;
  uint32_t code = 0;
  uint32_t smallest = 0;  // below it the form is overlong
  if ((first & 0xe0) == 0xc0) {
    length = 2, code = first & 0x1fu, smallest = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3, code = first & 0x0fu, smallest = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4, code = first & 0x07u, smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < smallest || code > 0x10ffff || surrogate) return {};
  return {code, length};
}

size_t find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = decode_utf8(text.substr(at)).length;
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t bad; (bad = find_invalid_utf8(text)) != std::string_view::npos;) {
    result.append(text.substr(0, bad)).append("\xef\xbf\xbd");
    text.remove_prefix(bad + 1);
  }
  return result.append(text);
}

}  // namespace hearth
