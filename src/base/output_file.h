// Files for writing: new files, logs, and small files that are replaced as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// A new file (must not exist), written from start to end. close() finishes it: it syncs and
/// closes, and checks both results. The destructor of an unfinished file only closes the
/// descriptor; the owner of the temporary name removes the file.
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

/// A log with one writer: opened to append, never truncated on open, one write call per line. If a
/// write fails halfway, the next write first cuts the torn line off, so the caller can retry.
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
  uint64_t whole_ = 0;  // bytes of complete lines
  bool torn_ = false;   // the file may hold more than whole_
};

/// Cuts a torn last line (no newline at the end) off a log. Does nothing if the file is missing.
void cut_torn_line(const std::string& path);

/// Replaces a small file: writes ".tmp-NAME" in the same directory, syncs it, renames it, syncs the
/// directory. A failed attempt leaves nothing behind.
void write_file_atomically(const std::string& path, std::string_view content);
/// Copies a regular file's content to `to`, which must not exist, and syncs it.
void copy_file(const std::string& from, const std::string& to);

}  // namespace hearth
