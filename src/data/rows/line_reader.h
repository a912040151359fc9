// Lines of a file or of standard input, read in pieces, with the digest of what was read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_ops.h"
#include "base/hash.h"

namespace hearth {

/// Lines from here on are refused; a plain text file may not be larger either.
inline constexpr size_t kMaxLine = size_t{64} << 20;

/// Only "\n" ends a line. Holds one line and one piece of the file in memory.
class LineReader {
 public:
  /// `-` is standard input. Input error for what is no regular file, for a Git LFS pointer, a
  /// pickle, and for compressed or columnar files by their first bytes.
  explicit LineReader(const std::string& path);

  /// The next line without its end, valid until the next call; nullopt behind the last one. An empty
  /// line at the very end, after the last "\n", is none. Input error for a line that is too long.
  std::optional<std::string_view> next();

  /// The rest of the input as one text, up to kMaxLine.
  std::string_view rest();

  int64_t number() const { return number_; }  // of the line given last, from 1
  std::string where() const;                  // FILE:LINE of it
  const std::string& name() const { return name_; }
  Digest digest() const { return hasher_.digest(); }  // of the bytes read so far

 private:
  bool fill();  // appends a piece to buffer_; false at the end

  std::string name_;
  std::optional<InputFile> file_;  // none: standard input
  uint64_t offset_ = 0;            // bytes read so far
  std::string buffer_;
  size_t begin_ = 0;  // of what is left in buffer_
  int64_t number_ = 0;
  Hasher hasher_;
};

}  // namespace hearth
