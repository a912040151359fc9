#include "topology/system_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace hearth {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

}  // namespace

std::string read_system_file(const std::string& path) {
  std::string content;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return content;
  char piece[4096];
  for (ssize_t n; content.size() < kMostBytes && (n = ::read(fd, piece, sizeof piece)) > 0;) {
    content.append(piece, static_cast<size_t>(n));
  }
  ::close(fd);
  return content;
}

std::string read_system_line(const std::string& path) {
  std::string line = read_system_file(path);
  line.resize(line.find_last_not_of(" \t\n") + 1);
  return line;
}

}  // namespace hearth
