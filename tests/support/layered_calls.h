// File calls that forward everything: the base class of calls that change some.
#pragma once

#include <string>
#include <vector>

#include "base/file_ops.h"

namespace hearth::test {

inline FileCalls& kernel_calls() {
  static FileCalls calls;
  return calls;
}

class LayeredCalls : public FileCalls {
 public:
  explicit LayeredCalls(FileCalls& below = kernel_calls()) : below_(below) {}

  int status(const char* path, bool follow_links, struct stat& status) override {
    return below_.status(path, follow_links, status);
  }
  int status_of(int fd, struct stat& status) override { return below_.status_of(fd, status); }
  int list(const char* path, std::vector<std::string>& names) override {
    return below_.list(path, names);
  }
  int real_path(const char* path, std::string& real) override {
    return below_.real_path(path, real);
  }
  int64_t free_bytes(const char* path) override { return below_.free_bytes(path); }
  int touch(const char* path) override { return below_.touch(path); }
  int open(const char* path, int flags, unsigned mode) override {
    return below_.open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    return below_.pread(fd, buffer, bytes, offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    return below_.pwrite(fd, buffer, bytes, offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    return below_.append(fd, buffer, bytes);
  }
  int fallocate(int fd, uint64_t bytes) override { return below_.fallocate(fd, bytes); }
  int truncate(int fd, uint64_t bytes) override { return below_.truncate(fd, bytes); }
  int sync(int fd) override { return below_.sync(fd); }
  int close(int fd) override { return below_.close(fd); }
  int rename(const char* from, const char* to, bool replace) override {
    return below_.rename(from, to, replace);
  }
  int mkdir(const char* path, unsigned mode) override { return below_.mkdir(path, mode); }
  int unlink(const char* path) override { return below_.unlink(path); }
  int rmdir(const char* path) override { return below_.rmdir(path); }
  int lock_exclusive(int fd) override { return below_.lock_exclusive(fd); }

 protected:
  FileCalls& below_;
};

}  // namespace hearth::test
