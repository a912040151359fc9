// The system calls that access files. Tests replace them to fail each call in turn, and to
// enumerate the file states that a crash can leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct stat;

namespace hearth {

/// One virtual function per system call; each returns a value >= 0 or -errno. This class makes the
/// real calls. Tests derive from it to fail calls or to keep files in memory. (tests/rooms finds
/// code that bypasses this class.)
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int status(const char* path, bool follow_links, struct stat& status);  // stat, lstat
  virtual int status_of(int fd, struct stat& status);
  virtual int list(const char* path, std::vector<std::string>& names);  // readdir to the end
  virtual int real_path(const char* path, std::string& real);
  virtual int64_t free_bytes(const char* path);  // of the path's file system, for this user
  virtual int touch(const char* path);
  virtual int open(const char* path, int flags, unsigned mode);
  virtual int64_t pread(int fd, void* buffer, size_t bytes, uint64_t offset);
  virtual int64_t pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset);
  virtual int64_t append(int fd, const void* buffer, size_t bytes);  // write(2)
  virtual int fallocate(int fd, uint64_t bytes);
  virtual int truncate(int fd, uint64_t bytes);
  virtual int sync(int fd);
  virtual int close(int fd);
  virtual int rename(const char* from, const char* to, bool replace);
  virtual int mkdir(const char* path, unsigned mode);
  virtual int unlink(const char* path);
  virtual int rmdir(const char* path);
  virtual int lock_exclusive(int fd);  // flock, without waiting
};

FileCalls& file_calls();
/// RAII, for tests: replaces the calls, and restores the previous calls when destroyed.
class FileCallsOverride {
 public:
  explicit FileCallsOverride(FileCalls& calls);
  ~FileCallsOverride();
  FileCallsOverride(const FileCallsOverride&) = delete;
  FileCallsOverride& operator=(const FileCallsOverride&) = delete;

 private:
  FileCalls* previous_;
};

}  // namespace hearth
