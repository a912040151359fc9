// File calls that fail at the n-th call, or transfer small pieces.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "support/layered_calls.h"

namespace hearth::test {

/// Counts calls from 1, and fails call `fail_at` with `error` (0: none). `persistent`: fails all
/// later calls. `piece` > 0: limits each transfer to that many bytes. `interrupts`: interrupts
/// every second call that can be interrupted.
class FailingCalls : public LayeredCalls {
 public:
  using LayeredCalls::LayeredCalls;

  int fail_at = 0;
  int error = EIO;
  bool persistent = false;
  size_t piece = 0;
  bool interrupts = false;

  int count() const { return count_; }
  /// Whether a call failed.
  bool failed() const { return failed_; }

  int status(const char* path, bool follow_links, struct stat& status) override {
    if (const int e = next()) return e;
    return below_.status(path, follow_links, status);
  }
  int status_of(int fd, struct stat& status) override {
    if (const int e = next()) return e;
    return below_.status_of(fd, status);
  }
  int list(const char* path, std::vector<std::string>& names) override {
    if (const int e = next()) return e;
    return below_.list(path, names);
  }
  int real_path(const char* path, std::string& real) override {
    if (const int e = next()) return e;
    return below_.real_path(path, real);
  }
  int64_t free_bytes(const char* path) override {
    if (const int e = next()) return e;
    return below_.free_bytes(path);
  }
  int open(const char* path, int flags, unsigned mode) override {
    if (const int e = next()) return e;
    return below_.open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    if (const int e = next()) return e;
    return below_.pread(fd, buffer, cut(bytes), offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    if (const int e = next()) return e;
    return below_.pwrite(fd, buffer, cut(bytes), offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    if (const int e = next()) return e;
    return below_.append(fd, buffer, cut(bytes));
  }
  int fallocate(int fd, uint64_t bytes) override {
    if (const int e = next()) return e;
    return below_.fallocate(fd, bytes);
  }
  int truncate(int fd, uint64_t bytes) override {
    if (const int e = next()) return e;
    return below_.truncate(fd, bytes);
  }
  // Skips the kernel's sync: no power is lost here, and tests make thousands of calls.
  int sync(int fd) override {
    if (const int e = next()) return e;
    return &below_ == &kernel_calls() ? 0 : below_.sync(fd);
  }
  // The descriptor is closed even if close fails.
  int close(int fd) override {
    const int e = next(false);
    const int result = below_.close(fd);
    return e ? e : result;
  }
  int rename(const char* from, const char* to, bool replace) override {
    if (const int e = next()) return e;
    return below_.rename(from, to, replace);
  }
  int mkdir(const char* path, unsigned mode) override {
    if (const int e = next()) return e;
    return below_.mkdir(path, mode);
  }
  int unlink(const char* path) override {
    if (const int e = next()) return e;
    return below_.unlink(path);
  }
  int rmdir(const char* path) override {
    if (const int e = next()) return e;
    return below_.rmdir(path);
  }
  int lock_exclusive(int fd) override {
    if (const int e = next()) return e;
    return below_.lock_exclusive(fd);
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
