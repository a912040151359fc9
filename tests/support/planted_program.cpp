// Makes the program of `tools/main.cpp` one that tests can disturb at any file operation, by the
// environment:
//   HEARTH_KILL_AT=n       raises a signal in place of (SIGKILL) or before the n-th call of
//                          base/file_ops.h, counted from 1
//   HEARTH_KILL_BY=number  that signal; SIGKILL if unset
//   HEARTH_SLOW_CALLS=us   sleeps so many microseconds before every call
//   HEARTH_CALL_LOG=FILE   a line for each call: its name and its file
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include "base/file_ops.h"
#include "budget/plan_time.h"
#include "support/faulty_files.h"

namespace hearth::test {
namespace {

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

std::string file_of(int fd) {
  char path[4096];
  const ssize_t n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return n < 0 ? "?" : std::string(path, static_cast<size_t>(n));
}

class DisturbedCalls : public LayeredCalls {
 public:
  DisturbedCalls() : LayeredCalls(static_cast<FileCalls&>(faulty_files())) {
    if (const char* log = std::getenv("HEARTH_CALL_LOG")) {
      log_ = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
  }

  int open(const char* path, int flags, unsigned mode) override {
    return before((flags & O_CREAT) != 0 ? "create" : "open", path),
           LayeredCalls::open(path, flags, mode);
  }
  int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset) override {
    return before("read", fd), LayeredCalls::pread(fd, buffer, bytes, offset);
  }
  int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) override {
    return before("write", fd), LayeredCalls::pwrite(fd, buffer, bytes, offset);
  }
  int64_t append(int fd, const void* buffer, size_t bytes) override {
    return before("append", fd), LayeredCalls::append(fd, buffer, bytes);
  }
  int fallocate(int fd, uint64_t bytes) override {
    return before("fallocate", fd), LayeredCalls::fallocate(fd, bytes);
  }
  int truncate(int fd, uint64_t bytes) override {
    return before("truncate", fd), LayeredCalls::truncate(fd, bytes);
  }
  int sync(int fd) override { return before("sync", fd), LayeredCalls::sync(fd); }
  int close(int fd) override { return before("close", fd), LayeredCalls::close(fd); }
  int rename(const char* from, const char* to, bool replace) override {
    return before("rename", to), LayeredCalls::rename(from, to, replace);
  }
  int mkdir(const char* path, unsigned mode) override {
    return before("mkdir", path), LayeredCalls::mkdir(path, mode);
  }
  int unlink(const char* path) override {
    return before("unlink", path), LayeredCalls::unlink(path);
  }
  int rmdir(const char* path) override { return before("rmdir", path), LayeredCalls::rmdir(path); }
  int lock_exclusive(int fd) override {
    return before("lock", fd), LayeredCalls::lock_exclusive(fd);
  }

 private:
  void before(const char* name, int fd) { before(name, log_ >= 0 ? file_of(fd).c_str() : ""); }
  void before(const char* name, const char* path) {
    if (log_ >= 0) {
      const std::string line = std::string(name) + " " + path + "\n";
      if (::write(log_, line.data(), line.size()) < 0) std::abort();
    }
    if (slow_ > 0) ::usleep(static_cast<useconds_t>(slow_));
    if (++count_ == at_) std::raise(by_);
  }

  const int64_t at_ = number_of("HEARTH_KILL_AT", 0);
  const int by_ = static_cast<int>(number_of("HEARTH_KILL_BY", SIGKILL));
  const int64_t slow_ = number_of("HEARTH_SLOW_CALLS", 0);
  int log_ = -1;
  std::atomic<int64_t> count_{0};
};

DisturbedCalls calls;
const FileCallsOverride override_for_ever(calls);

// Half a second a start, of which tests make hundreds.
const AssumedRates quick;

}  // namespace
}  // namespace hearth::test
