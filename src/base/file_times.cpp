#include "base/file_times.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file_failure.h"
#include "base/file_ops.h"

namespace hearth {

int64_t modified_time(const std::string& path) {
  struct stat status;
  system_path(path);
  if (retried([&] { return file_calls().status(path.c_str(), true, status); }) < 0) return 0;
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

bool touch_file(const std::string& path) {
  system_path(path);
  return retried([&] { return file_calls().touch(path.c_str()); }) >= 0;
}

bool is_own_file(const std::string& path) {
  struct stat status;
  system_path(path);
  if (retried([&] { return file_calls().status(path.c_str(), false, status); }) < 0) return false;
  return S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

void make_private_directory(const std::string& path) {
  if (file_info(path).kind == FileKind::directory) return;
  const std::string parent = parent_of(path);
  if (parent != path && parent != ".") make_private_directory(parent);
  const int result = retried([&] { return file_calls().mkdir(path.c_str(), 0700); });
  if (result == -EEXIST && file_info(path).kind == FileKind::directory) return;
  checked(result, path, "make the directory");
}

}  // namespace hearth
