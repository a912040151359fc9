// The system calls themselves.
#include "base/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hearth {
namespace {

// Linux moves at most this much in one call.
constexpr size_t kMaxTransfer = size_t{1} << 30;

template <class T>
T result_of(T value) {
  return value < 0 ? static_cast<T>(-errno) : value;
}

FileCalls& kernel() {
  static FileCalls calls;
  return calls;
}

std::atomic<FileCalls*> current{nullptr};

}  // namespace

int FileCalls::status(const char* path, bool follow_links, struct stat& status) {
  return result_of(follow_links ? ::stat(path, &status) : ::lstat(path, &status));
}

int FileCalls::status_of(int fd, struct stat& status) { return result_of(::fstat(fd, &status)); }

int FileCalls::list(const char* path, std::vector<std::string>& names) {
  DIR* directory = ::opendir(path);
  if (!directory) return -errno;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(directory);
  return -error;
}

int FileCalls::real_path(const char* path, std::string& real) {
  char* found = ::realpath(path, nullptr);
  if (!found) return -errno;
  real = found;
  std::free(found);
  return 0;
}

int64_t FileCalls::free_bytes(const char* path) {
  struct statvfs status;
  if (::statvfs(path, &status) != 0) return -errno;
  const uint64_t bytes = uint64_t{status.f_bavail} * status.f_frsize;
  return static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX));
}

int FileCalls::touch(const char* path) {
  return result_of(::utimensat(AT_FDCWD, path, nullptr, 0));
}

int FileCalls::open(const char* path, int flags, unsigned mode) {
  return result_of(::open(path, flags | O_CLOEXEC | O_NOCTTY, mode));
}

int64_t FileCalls::pread(int fd, void* buffer, size_t bytes, uint64_t offset) {
  return result_of<int64_t>(
      ::pread(fd, buffer, std::min(bytes, kMaxTransfer), static_cast<off_t>(offset)));
}

int64_t FileCalls::pwrite(int fd, const void* buffer, size_t bytes, uint64_t offset) {
  return result_of<int64_t>(
      ::pwrite(fd, buffer, std::min(bytes, kMaxTransfer), static_cast<off_t>(offset)));
}

int64_t FileCalls::append(int fd, const void* buffer, size_t bytes) {
  return result_of<int64_t>(::write(fd, buffer, std::min(bytes, kMaxTransfer)));
}

int FileCalls::fallocate(int fd, uint64_t bytes) {
  return result_of(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)));
}

int FileCalls::truncate(int fd, uint64_t bytes) {
  return result_of(::ftruncate(fd, static_cast<off_t>(bytes)));
}

int FileCalls::sync(int fd) { return result_of(::fsync(fd)); }
int FileCalls::close(int fd) { return result_of(::close(fd)); }

int FileCalls::rename(const char* from, const char* to, bool replace) {
  if (replace) return result_of(::rename(from, to));
  const int result = result_of(::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
  if (result != -EINVAL) return result;  // which glibc also says for a kernel without the call
  // A file system without the flag (NFS, FUSE): look first. One process owns the directory.
  struct stat status;
  if (::lstat(to, &status) == 0) return -EEXIST;
  return result_of(::rename(from, to));
}

int FileCalls::mkdir(const char* path, unsigned mode) { return result_of(::mkdir(path, mode)); }
int FileCalls::unlink(const char* path) { return result_of(::unlink(path)); }
int FileCalls::rmdir(const char* path) { return result_of(::rmdir(path)); }
int FileCalls::lock_exclusive(int fd) { return result_of(::flock(fd, LOCK_EX | LOCK_NB)); }

FileCalls& file_calls() {
  FileCalls* calls = current.load(std::memory_order_acquire);
  return calls ? *calls : kernel();
}

FileCallsOverride::FileCallsOverride(FileCalls& calls) : previous_(current.exchange(&calls)) {}
FileCallsOverride::~FileCallsOverride() { current.store(previous_); }

}  // namespace hearth
