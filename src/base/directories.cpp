// Names, directories and locks.
#include "base/directories.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/file_calls.h"
#include "base/file_failure.h"

namespace hearth {

FileInfo file_info(const std::string& path) {
  struct stat status;
  FileInfo info;
  system_path(path);
  const auto look = [&](bool follow_links) {
    return retried([&] { return file_calls().status(path.c_str(), follow_links, status); });
  };
  const auto found = [&](int result) {
    if (result == -ENOENT || result == -ENOTDIR) return false;
    checked(result, path, "look at");
    return true;
  };
  if (!found(look(false))) return info;
  info.is_link = S_ISLNK(status.st_mode);
  if (info.is_link) {
    const int result = look(true);
    if (result == -ELOOP || !found(result)) return info;  // leads nowhere
  }
  info.kind = S_ISREG(status.st_mode)   ? FileKind::regular
              : S_ISDIR(status.st_mode) ? FileKind::directory
                                        : FileKind::other;
  if (info.kind == FileKind::regular) info.size = static_cast<uint64_t>(status.st_size);
  return info;
}

std::vector<std::string> list_directory(const std::string& path) {
  system_path(path);
  std::vector<std::string> names;
  checked(retried([&] {
            names.clear();
            return file_calls().list(path.c_str(), names);
          }),
          path, "list");
  std::sort(names.begin(), names.end());
  return names;
}

void make_directory(const std::string& path) {
  system_path(path);
  const FileInfo info = file_info(path);
  if (info.kind == FileKind::directory) return;
  const std::string parent = parent_of(path);
  if (parent != path && parent != ".") make_directory(parent);
  const int result = retried([&] { return file_calls().mkdir(path.c_str(), 0777); });
  if (result == -EEXIST && file_info(path).kind == FileKind::directory) return;
  checked(result, path, "make the directory");
  sync_directory(parent);  // else what is committed inside it could vanish with it
}

void sync_directory(const std::string& path) {
  system_path(path);
  const int fd = static_cast<int>(
      checked(retried([&] { return file_calls().open(path.c_str(), O_RDONLY | O_DIRECTORY, 0); }),
              path, "open"));
  const int synced = retried([&] { return file_calls().sync(fd); });
  const int closed = file_calls().close(fd);
  checked(synced, path, "sync");
  checked(closed, path, "close");
}

namespace {

void rename_checked(const std::string& from, const std::string& to, bool replace) {
  system_path(from);
  system_path(to);
  checked(retried([&] { return file_calls().rename(from.c_str(), to.c_str(), replace); }), from,
          "rename to " + to);
}

void remove_checked(const std::string& path, bool directory) {
  const int result = retried([&] {
    return directory ? file_calls().rmdir(path.c_str()) : file_calls().unlink(path.c_str());
  });
  if (result != -ENOENT) checked(result, path, "remove");
}

}  // namespace

void rename_no_replace(const std::string& from, const std::string& to) {
  rename_checked(from, to, false);
}

void rename_replace(const std::string& from, const std::string& to) {
  rename_checked(from, to, true);
}

void remove_file(const std::string& path) {
  system_path(path);
  remove_checked(path, false);
}

void remove_tree(const std::string& path) {
  const FileInfo info = file_info(path);
  const bool directory = info.kind == FileKind::directory && !info.is_link;
  if (directory) {
    for (const std::string& name : list_directory(path)) remove_tree(path + "/" + name);
  }
  remove_checked(path, directory);
}

uint64_t free_bytes(const std::string& path) {
  system_path(path);
  return static_cast<uint64_t>(
      checked(retried([&] { return file_calls().free_bytes(path.c_str()); }), path,
              "look at the file system of"));
}

std::string real_path(const std::string& path) {
  system_path(path);
  std::string real;
  const int result = retried([&] { return file_calls().real_path(path.c_str(), real); });
  if (result < 0) throw input_error(file_failure(path, "resolve", result));
  return real;
}

namespace {

/// Whether the path leads elsewhere than to the open file: another process has removed that.
bool is_elsewhere(const std::string& path, int fd) {
  struct stat there = {}, open = {};
  const int found = file_calls().status(path.c_str(), true, there);
  if (found < 0 || file_calls().status_of(fd, open) < 0) return found == -ENOENT;
  return there.st_dev != open.st_dev || there.st_ino != open.st_ino;
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& purpose) {
  system_path(path);
  int result = 0;
  for (bool locked = false; !locked && result >= 0;) {
    fd_ = static_cast<int>(
        checked(retried([&] { return file_calls().open(path.c_str(), O_RDWR | O_CREAT, 0666); }),
                path, "open"));
    result = retried([&] { return file_calls().lock_exclusive(fd_); });
    locked = result >= 0 && !is_elsewhere(path, fd_);
    if (!locked) file_calls().close(fd_);
  }
  if (result >= 0) return;
  if (result == -EWOULDBLOCK) {
    throw usage_error(path + ": another process holds " + purpose +
                      "; wait until it ends or choose another directory");
  }
  throw storage_error(file_failure(path, "lock", result));
}

FileLock::~FileLock() { file_calls().close(fd_); }

}  // namespace hearth
