// Lines of a file or of standard input, read in pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/rows/byte_stream.h"

namespace hearth {

/// Lines from here on are refused; a plain text file may not be larger either, nor a row of a JSON
/// array.
inline constexpr size_t kMaxLine = size_t{48} << 20;
/// Makes room for a whole line once one turns out to be long: growth by doubling would hold it twice.
inline void reserve_for_line(std::string& buffer) {
  if (buffer.size() > kMaxLine / 8) buffer.reserve(kMaxLine);
}
/// What is read at once.
inline constexpr size_t kTextPiece = size_t{1} << 20;

/// Only "\n" ends a line. Holds one line and one piece of the text in memory.
class LineReader {
 public:
  /// `head`: what was taken from the stream already.
  explicit LineReader(ByteStream& bytes, std::string head = {})
      : bytes_(bytes), buffer_(std::move(head)) {}

  /// The next line without its end, valid until the next call; nullopt behind the last one. An empty
  /// line at the very end, after the last "\n", is none. Input error for a line that is too long.
  std::optional<std::string_view> next();

  /// The rest of the input as one text, up to kMaxLine.
  std::string_view rest();

  int64_t number() const { return number_; }  // of the line given last, from 1
  std::string where() const { return bytes_.name() + ":" + std::to_string(number_); }

 private:
  bool take_piece();

  ByteStream& bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is left in buffer_
  int64_t number_ = 0;
};

}  // namespace hearth
