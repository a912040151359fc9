// File calls that know the path of each file, and call hooks of a test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/file_ops.h"

namespace hearth::test {

/// The hooks get the path before a write or read, on any thread. If a hook returns a value below 0,
/// that is the result of the call.
class PathCalls : public FileCalls {
 public:
  std::function<int(const std::string&path)> on_write, on_read;

  int open(const char* path, int flags, unsigned mode) override {
    const int fd = FileCalls::open(path, flags, mode);
    const std::lock_guard lock(mutex_);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    const int result = on_read ? on_read(path_of(fd)) : 0;
    return result < 0 ? result : FileCalls::pread(fd, buffer, bytes, offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    const int result = on_write ? on_write(path_of(fd)) : 0;
    return result < 0 ? result : FileCalls::pwrite(fd, buffer, bytes, offset);
  }

 private:
  std::string path_of(int fd) {
    const std::lock_guard lock(mutex_);
    return paths_[fd];
  }

  std::mutex mutex_;
  std::map<int, std::string> paths_;
};

}  // namespace hearth::test
