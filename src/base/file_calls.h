// The system calls with which the project reaches files, so that tests can fail each call in turn,
// and enumerate what a crash would leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct stat;

namespace hearth {

/// The system calls with which the project reaches files, one virtual function each; each returns a
/// value >= 0 or -errno. This class is the kernel; tests derive from it and fail what they like, or
/// keep files in memory. (tests/rooms finds what goes past it.)
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int status(const char* path, bool follow_links, struct stat& status);  // stat, lstat
  virtual int status_of(int fd, struct stat& status);
  virtual int list(const char* path, std::vector<std::string>& names);  // readdir to the end
  virtual int real_path(const char* path, std::string& real);
  virtual int64_t free_bytes(const char* path);  // of its file system, for this user
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
/// Replaces the calls for a test; the previous ones return when the guard dies.
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
