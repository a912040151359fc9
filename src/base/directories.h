// Directories, renames and lock files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

enum class FileKind { none, regular, directory, other };

struct FileInfo {
  FileKind kind = FileKind::none;  // kind of the link's target, if the path is a link
  bool is_link = false;
  uint64_t size = 0;
};

FileInfo file_info(const std::string& path);                       // FileKind::none if missing
std::vector<std::string> list_directory(const std::string& path);  // names, sorted
void make_directory(const std::string& path);  // and its parents, durably; may exist
void sync_directory(const std::string& path);
void rename_no_replace(const std::string& from, const std::string& to);
void rename_replace(const std::string& from, const std::string& to);
void remove_file(const std::string& path);     // may be missing
void remove_tree(const std::string& path);     // does not follow links; may be missing
uint64_t free_bytes(const std::string& path);  // of the path's file system
/// The absolute path without links. Input error if a component is missing.
std::string real_path(const std::string& path);

/// RAII: an exclusive lock on a file, which is created if missing. Usage error if another process
/// holds the lock.
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
