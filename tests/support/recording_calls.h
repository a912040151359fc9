// File calls that record writes, syncs and renames, so tests can check their order.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/file_ops.h"

namespace hearth::test {

/// Records lines "write PATH", "sync PATH", "rename FROM TO". Not thread-safe.
class RecordingCalls : public FileCalls {
 public:
  std::vector<std::string> lines;

  /// Index of the last occurrence of the line; -1 if there is none.
  int64_t last(const std::string& line) const {
    const auto found = std::find(lines.rbegin(), lines.rend(), line);
    return static_cast<int64_t>(lines.rend() - found) - 1;
  }

  int open(const char* path, int flags, unsigned mode) override {
    const int fd = FileCalls::open(path, flags, mode);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    lines.push_back("write " + paths_[fd]);
    return FileCalls::pwrite(fd, buffer, bytes, offset);
  }
  int sync(int fd) override {
    lines.push_back("sync " + paths_[fd]);
    return FileCalls::sync(fd);
  }
  int rename(const char* from, const char* to, bool replace) override {
    lines.push_back("rename " + std::string(from) + " " + to);
    return FileCalls::rename(from, to, replace);
  }

 private:
  std::map<int, std::string> paths_;
};

}  // namespace hearth::test
