// Reading.
#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/directories.h"
#include "base/error.h"
#include "base/file_calls.h"
#include "base/file_failure.h"

namespace hearth {
namespace {

// The caller's mistake, as opposed to a disk or permission that fails.
bool is_bad_path(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void refuse_unless_regular(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  throw input_error(path + ": is " + std::string(kind_of(mode)) +
                    "; only regular files are read (for data, '-' is stdin)");
}

[[noreturn]] void refuse_open(const std::string& path, int error) {
  const std::string message = file_failure(path, "open", -error);
  throw is_bad_path(error) ? input_error(message) : storage_error(message);
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  struct stat status;
  // Before open, because opening a device or a FIFO may act on it.
  system_path(path);
  const int seen = retried([&] { return file_calls().status(path.c_str(), true, status); });
  if (seen < 0) refuse_open(path, -seen);
  refuse_unless_regular(path, status.st_mode);
  const int fd = retried([&] { return file_calls().open(path.c_str(), O_RDONLY | O_NONBLOCK, 0); });
  if (fd < 0) refuse_open(path, -fd);
  fd_ = fd;
  try {
    const int found = retried([&] { return file_calls().status_of(fd_, status); });
    if (found < 0) refuse_open(path, -found);
    refuse_unless_regular(path, status.st_mode);
  } catch (...) {
    file_calls().close(fd_);
    throw;
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (fd_ >= 0) file_calls().close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

void InputFile::read(void* target, size_t bytes, uint64_t offset) const {
  auto* to = static_cast<std::byte*>(target);
  while (bytes > 0) {
    const int64_t n =
        checked(retried([&] { return file_calls().pread(fd_, to, bytes, offset); }), path_, "read");
    if (n == 0) {
      throw input_error(path_ + ": ends at byte " + std::to_string(offset) + ", " +
                        std::to_string(bytes) + " bytes too early; it is truncated or was changed");
    }
    to += n;
    bytes -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  const InputFile file(path);
  if (file.size() > max_bytes) {
    throw input_error(path + ": has " + std::to_string(file.size()) + " bytes, more than the " +
                      std::to_string(max_bytes) + " that such a file may have");
  }
  std::string content(file.size(), '\0');
  file.read(content.data(), content.size(), 0);
  return content;
}

}  // namespace hearth
