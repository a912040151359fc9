// Files for writing: new ones, logs, and small ones that are replaced as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

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

}  // namespace hearth
