// A log of JSON Lines in the run directory: every line one appended write, whole after a crash.
#pragma once

#include <string>

#include "base/file_ops.h"
#include "base/json.h"

namespace hearth {

class JsonLog {
 public:
  /// Opens to append; a torn last line must have been cut off (RunDirectory::clean).
  explicit JsonLog(const std::string& path) : file_(path) {}
  /// A line that cannot be written is tried once more; then a storage error.
  void append(const Json& line);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace hearth
