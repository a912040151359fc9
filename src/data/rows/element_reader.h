// The elements of a JSON array, cut out one by one: the file is never in memory as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/rows/byte_stream.h"

namespace hearth {

/// Cuts by brackets and quotes alone; whether an element is JSON is its parser's to say. Holds one
/// element, up to kMaxLine, and one piece of the text in memory.
class ElementReader {
 public:
  /// `head`: what was taken from the stream already. The text's first character, after a byte order
  /// mark and blanks, is '['.
  explicit ElementReader(ByteStream& bytes, std::string head);

  /// The text of the next element, valid until the next call; nullopt behind the last one. Input
  /// error where the array itself is none: a comma or a bracket that is missing, something behind it.
  std::optional<std::string_view> next();

  int64_t line() const { return element_line_; }  // of the first character of the element

 private:
  bool fill();
  std::optional<char> next_character();
  std::string_view take_element();
  [[noreturn]] void refuse(const std::string& what) const;

  ByteStream& bytes_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_ = 1;  // that buffer_[at_] stands in
  int64_t element_line_ = 0;
  bool first_ = true;
};

}  // namespace hearth
