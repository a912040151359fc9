// Every operation that touches the disk goes through here, so that tests can fail each call in
// turn, and enumerate what a crash would leave.
//
// Functions raise storage errors that name the path and the system's reason, unless they say
// otherwise. EINTR and short transfers are handled here. A failed sync is final: never retried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct stat;

namespace hearth {

enum class FileKind { none, regular, directory, other };

struct FileInfo {
  FileKind kind = FileKind::none;  // links are followed
  bool is_link = false;
  uint64_t size = 0;
};

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

/// A regular file opened for reading. Reading never changes a position: threads may share it.
/// What is not a regular file (directory, FIFO, device, socket) is refused with an input error,
/// as is a file that is missing; no permission and a failing disk are storage errors. A Git LFS
/// pointer or a pickle is the parser's to refuse.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Reads exactly bytes at offset; an input error when the file is shorter (it shrank).
  void read(void* target, size_t bytes, uint64_t offset) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// The whole of a regular file; input error when larger than max_bytes.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

/// A new file (must not exist), written from start to end, then finished by close(): sync and close
/// with both results checked. Destroying it unfinished closes the descriptor only; the owner of the
/// temporary name removes the file.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void reserve(uint64_t bytes);  // fails early on a full disk
  void write(const void* data, size_t bytes);
  uint64_t written() const { return offset_; }
  void close();

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t offset_ = 0;
};

/// A log: opened to append, one write call a line, never truncated on open. Has one writer. A line
/// that failed in the middle is cut off before the next one, so that the line can be tried again.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  /// Appends the line and a newline in one write.
  void line(std::string_view text);
  /// The same for a record of a binary log.
  void record(std::string_view bytes);
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t whole_ = 0;  // bytes of whole lines
  bool torn_ = false;   // more than that may be in the file
};

/// Cuts a torn last line (no newline at the end) off a log. Does nothing if the file is missing.
void cut_torn_line(const std::string& path);

/// Writes a small file under a temporary name in the same directory (".tmp-NAME"), syncs, renames
/// over the old one, syncs the directory. Nothing of a failed attempt stays.
void write_file_atomically(const std::string& path, std::string_view content);
/// Copies a regular file's content to `to`, which must not exist, and syncs it.
void copy_file(const std::string& from, const std::string& to);

FileInfo file_info(const std::string& path);                       // kind none when missing
std::vector<std::string> list_directory(const std::string& path);  // names, sorted
void make_directory(const std::string& path);  // parents too, durably; fine if it exists
void sync_directory(const std::string& path);
void rename_no_replace(const std::string& from, const std::string& to);
void rename_replace(const std::string& from, const std::string& to);
void remove_file(const std::string& path);     // fine if missing
void remove_tree(const std::string& path);     // does not follow links; fine if missing
uint64_t free_bytes(const std::string& path);  // of its file system
/// The absolute path without links. An input error when something on it is missing.
std::string real_path(const std::string& path);

/// Exclusive lock on a file (created if missing), held while this lives. Usage error when another
/// process holds it.
class FileLock {
 public:
  FileLock(const std::string& path, const std::string& purpose);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace hearth
