// Reads the lines of a log that a run may still append to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_ops.h"

namespace hearth {

/// Walks the complete lines of a file, up to its size when it was opened. Reads in pieces, so
/// memory does not depend on the file's size. Ignores text after the last line break: a torn line,
/// or a line being written.
class LogLines {
 public:
  /// `file` must outlive this; several walks over one file see the same lines.
  explicit LogLines(const InputFile& file) : file_(file) {}

  /// The next line without its line break, valid until the next call; false at the end. Input error
  /// naming file and line if it has more than 16 MiB.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  // of the last line, from 1

 private:
  const InputFile& file_;
  uint64_t read_ = 0;   // bytes read from the file so far
  std::string buffer_;  // whole lines and the beginning of one
  size_t at_ = 0;       // start of the next line in the buffer
  int64_t number_ = 0;
};

}  // namespace hearth
