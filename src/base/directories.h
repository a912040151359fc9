// Directories, names and locks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

enum class FileKind { none, regular, directory, other };

struct FileInfo {
  FileKind kind = FileKind::none;  // links are followed
  bool is_link = false;
  uint64_t size = 0;
};

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
