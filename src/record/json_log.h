// A JSON Lines log in the run directory. Appends each line with one write, so a crash can tear only
// the last line.
#pragma once

#include <string>

#include "base/file_ops.h"
#include "base/json.h"

namespace hearth {

class JsonLog {
 public:
  /// Opens to append. RunDirectory::clean must have removed a torn last line.
  explicit JsonLog(const std::string& path) : file_(path) {}
  /// Retries a failed write once; then throws a storage error.
  void append(const Json& line);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace hearth
