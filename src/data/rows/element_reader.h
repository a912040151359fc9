// Reads the elements of a JSON array one by one, so the file is never in memory as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/rows/byte_stream.h"

namespace hearth {

/// Splits by brackets and quotes only; does not check that an element is valid JSON. Holds one
/// element, up to kMaxLine, and one piece of the text in memory.
class ElementReader {
 public:
  /// `head`: text already read from the stream. After a byte order mark and blanks, the first
  /// character must be '['.
  explicit ElementReader(ByteStream& bytes, std::string head);

  /// The text of the next element, valid until the next call; nullopt after the last. Input error
  /// if the array is malformed: a missing comma or bracket, or text after it.
  std::optional<std::string_view> next();

  int64_t line() const { return element_line_; }  // of the element's first character

 private:
  bool fill();
  std::optional<char> next_character();
  std::string_view take_element();
  [[noreturn]] void refuse(const std::string& what) const;

  ByteStream& bytes_;
  std::string buffer_;
  size_t at_ = 0;
  int64_t line_ = 1;  // of buffer_[at_]
  int64_t element_line_ = 0;
  bool first_ = true;
};

}  // namespace hearth
