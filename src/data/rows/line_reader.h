// Reads lines of a file or of standard input, in pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/rows/byte_stream.h"

namespace hearth {

/// A line, a plain text file or an element of a JSON array must be smaller than this.
inline constexpr size_t kMaxLine = size_t{48} << 20;
/// Reserves the largest size once a line is long. Growth by doubling would hold it twice.
inline void reserve_for_line(std::string& buffer) {
  if (buffer.size() > kMaxLine / 8) buffer.reserve(kMaxLine);
}
/// Bytes per read.
inline constexpr size_t kTextPiece = size_t{1} << 20;

/// Only "\n" ends a line. Holds one line and one piece of the text in memory.
class LineReader {
 public:
  /// `head`: text already read from the stream.
  explicit LineReader(ByteStream& bytes, std::string head = {})
      : bytes_(bytes), buffer_(std::move(head)) {}

  /// The next line without its "\n", valid until the next call; nullopt after the last. Nothing
  /// after the last "\n" is not a line. Input error for a line that is too long.
  std::optional<std::string_view> next();

  /// The rest of the input as one text, up to kMaxLine.
  std::string_view rest();

  int64_t number() const { return number_; }  // of the last line returned, from 1
  std::string where() const { return bytes_.name() + ":" + std::to_string(number_); }

 private:
  bool take_piece();

  ByteStream& bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of the unread part of buffer_
  int64_t number_ = 0;
};

}  // namespace hearth
