// Makes the program of `tools/main.cpp` one that tests can kill at any file operation:
// HEARTH_KILL_AT=n ends it by SIGKILL in place of the n-th call of base/file_ops.h.
#include <atomic>
#include <csignal>
#include <cstdlib>

#include "base/file_ops.h"

namespace hearth::test {
namespace {

class KillingCalls : public FileCalls {
 public:
  explicit KillingCalls(int64_t at) : at_(at) {}

  int open(const char* path, int flags, unsigned mode) override {
    return count(), FileCalls::open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    return count(), FileCalls::pread(fd, buffer, bytes, offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    return count(), FileCalls::pwrite(fd, buffer, bytes, offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    return count(), FileCalls::append(fd, buffer, bytes);
  }
  int fallocate(int fd, uint64_t bytes) override { return count(), FileCalls::fallocate(fd, bytes); }
  int truncate(int fd, uint64_t bytes) override { return count(), FileCalls::truncate(fd, bytes); }
  int sync(int fd) override { return count(), FileCalls::sync(fd); }
  int close(int fd) override { return count(), FileCalls::close(fd); }
  int rename(const char* from, const char* to, bool replace) override {
    return count(), FileCalls::rename(from, to, replace);
  }
  int mkdir(const char* path, unsigned mode) override {
    return count(), FileCalls::mkdir(path, mode);
  }
  int unlink(const char* path) override { return count(), FileCalls::unlink(path); }
  int rmdir(const char* path) override { return count(), FileCalls::rmdir(path); }
  int lock_exclusive(int fd) override { return count(), FileCalls::lock_exclusive(fd); }

 private:
  void count() {
    if (++count_ == at_) std::raise(SIGKILL);
  }

  int64_t at_;
  std::atomic<int64_t> count_{0};
};

int64_t kill_at() {
  const char* text = std::getenv("HEARTH_KILL_AT");
  return text ? std::atoll(text) : 0;
}

KillingCalls calls(kill_at());
const FileCallsOverride override_for_ever(calls);

}  // namespace
}  // namespace hearth::test
