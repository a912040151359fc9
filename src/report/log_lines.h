// The lines of a log that may still be written to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_ops.h"

namespace hearth {

/// Walks the whole lines of a file as far as it had grown when it was opened, in pieces: memory does
/// not depend on the file. What stands behind the last line break (a torn line, or one that is being
/// written) is left out.
class LogLines {
 public:
  /// `file` must outlive this; several walks over one file see the same lines.
  explicit LogLines(const InputFile& file) : file_(file) {}

  /// The next line without its line break, valid until the next call; false at the end. Input error
  /// naming file and line when it has more than 16 MiB.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  // of the last line, from 1

 private:
  const InputFile& file_;
  uint64_t read_ = 0;   // bytes of the file that are or were in the buffer
  std::string buffer_;  // whole lines and the beginning of one
  size_t at_ = 0;       // of the next line in the buffer
  int64_t number_ = 0;
};

}  // namespace hearth
