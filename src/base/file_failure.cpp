#include "base/file_failure.h"

#include <climits>
#include <cstring>

#include "base/error.h"

namespace hearth {

std::string file_failure(const std::string& path, std::string_view action, int64_t negative_errno) {
  const char* reason = strerrordesc_np(static_cast<int>(-negative_errno));
  return path + ": cannot " + std::string(action) + ": " + (reason ? reason : "unknown error");
}

int64_t checked(int64_t result, const std::string& path, std::string_view action) {
  if (result < 0) throw storage_error(file_failure(path, action, result));
  return result;
}

const char* system_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw input_error(quoted(path) + ": a NUL byte in a file name");
  }
  size_t name = 0;  // bytes of the longest
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    name = std::max(name, end - at);
    at = end + 1;
  }
  if (path.size() >= PATH_MAX || name > NAME_MAX) {
    throw input_error(quoted(path) + ": no file can have a name that is so long");
  }
  return path.c_str();
}

std::string parent_of(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  const size_t parent_end = path.find_last_not_of('/', slash);
  return parent_end == std::string::npos ? "/" : path.substr(0, parent_end + 1);
}

std::string name_of_file(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const size_t slash = path.find_last_of('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

}  // namespace hearth
