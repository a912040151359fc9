// Simulates a file that loses its second half while it is read.
#pragma once

#include <unistd.h>

#include <atomic>
#include <climits>
#include <mutex>
#include <string>

#include "base/file_ops.h"

namespace hearth::test {

/// Cuts a file to half before the n-th read (from 1), which reads it.
class ShrinkingFile : public FileCalls {
 public:
  explicit ShrinkingFile(int at) : at_(at) {}

  /// Path of the cut file; empty if there were fewer reads.
  std::string path() const {
    const std::lock_guard lock(mutex_);
    return path_;
  }

  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    if (++count_ == at_) shrink(fd);
    return FileCalls::pread(fd, buffer, bytes, offset);
  }

 private:
  void shrink(int fd) {
    char name[PATH_MAX] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), name, sizeof name - 1) <= 0) return;
    const off_t size = ::lseek(fd, 0, SEEK_END);
    const std::lock_guard lock(mutex_);
    if (::truncate(name, size / 2) == 0) path_ = name;
  }

  int at_;
  std::atomic<int> count_{0};
  mutable std::mutex mutex_;
  std::string path_;
};

}  // namespace hearth::test
