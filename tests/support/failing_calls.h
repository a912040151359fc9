// File calls that fail the n-th one, or transfer in small pieces.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/file_ops.h"

namespace hearth::test {

/// Counts the calls from 1 and fails number `fail_at` with `error` (0: none). `persistent`: all from
/// then on. `piece` > 0: transfers move at most that many bytes; `interrupts`: every second call
/// that may be interrupted is.
class FailingCalls : public FileCalls {
 public:
  int fail_at = 0;
  int error = EIO;
  bool persistent = false;
  size_t piece = 0;
  bool interrupts = false;

  int count() const { return count_; }
  /// A call that really failed was seen.
  bool failed() const { return failed_; }

  int open(const char* path, int flags, unsigned mode) override {
    if (const int e = next()) return e;
    return FileCalls::open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    if (const int e = next()) return e;
    return FileCalls::pread(fd, buffer, cut(bytes), offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    if (const int e = next()) return e;
    return FileCalls::pwrite(fd, buffer, cut(bytes), offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    if (const int e = next()) return e;
    return FileCalls::append(fd, buffer, cut(bytes));
  }
  int fallocate(int fd, uint64_t bytes) override {
    if (const int e = next()) return e;
    return FileCalls::fallocate(fd, bytes);
  }
  int truncate(int fd, uint64_t bytes) override {
    if (const int e = next()) return e;
    return FileCalls::truncate(fd, bytes);
  }
  // Not carried out: no power is lost here, and tests make thousands.
  int sync(int) override { return next(); }
  // The descriptor is gone even when close fails.
  int close(int fd) override {
    const int e = next(false);
    const int result = FileCalls::close(fd);
    return e ? e : result;
  }
  int rename(const char* from, const char* to, bool replace) override {
    if (const int e = next()) return e;
    return FileCalls::rename(from, to, replace);
  }
  int mkdir(const char* path, unsigned mode) override {
    if (const int e = next()) return e;
    return FileCalls::mkdir(path, mode);
  }
  int unlink(const char* path) override {
    if (const int e = next()) return e;
    return FileCalls::unlink(path);
  }
  int rmdir(const char* path) override {
    if (const int e = next()) return e;
    return FileCalls::rmdir(path);
  }
  int lock_exclusive(int fd) override {
    if (const int e = next()) return e;
    return FileCalls::lock_exclusive(fd);
  }

 private:
  int next(bool interruptible = true) {
    const int n = ++count_;
    if (interrupts && interruptible && n % 2 == 1) return -EINTR;
    if (fail_at > 0 && (n == fail_at || (persistent && n > fail_at))) {
      failed_ = true;
      return -error;
    }
    return 0;
  }
  size_t cut(size_t bytes) const { return piece > 0 ? std::min(bytes, piece) : bytes; }

  std::atomic<int> count_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace hearth::test
