// Writing: new files, logs, and small files replaced as a whole.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/directories.h"
#include "base/error.h"
#include "base/file_calls.h"
#include "base/file_failure.h"
#include "base/input_file.h"

namespace hearth {
namespace {

constexpr unsigned kFileMode = 0666;  // less the umask
constexpr size_t kCopyPiece = size_t{4} << 20;

int open_file(const std::string& path, int flags) {
  system_path(path);
  return static_cast<int>(
      checked(retried([&] { return file_calls().open(path.c_str(), flags, kFileMode); }), path,
              flags & O_EXCL ? "create" : "open"));
}

uint64_t size_of_open(int fd, const std::string& path) {
  struct stat status;
  checked(retried([&] { return file_calls().status_of(fd, status); }), path, "open");
  return static_cast<uint64_t>(status.st_size);
}

// A transfer of no bytes would repeat for ever.
uint64_t checked_write(int64_t result, const std::string& path) {
  return static_cast<uint64_t>(checked(result == 0 ? -EIO : result, path, "write"));
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : path_(path), fd_(open_file(path, O_WRONLY | O_CREAT | O_EXCL)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) file_calls().close(fd_);
}

void OutputFile::reserve(uint64_t bytes) {
  if (bytes == 0) return;
  const int result = retried([&] { return file_calls().fallocate(fd_, bytes); });
  if (result == -EOPNOTSUPP || result == -ENOSYS)
    return;  // this file system cannot: the writes tell
  checked(result, path_, "reserve " + std::to_string(bytes) + " bytes");
}

void OutputFile::write(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const uint64_t n = checked_write(
        retried([&] { return file_calls().pwrite(fd_, from, bytes, offset_); }), path_);
    from += n;
    bytes -= n;
    offset_ += n;
  }
}

void OutputFile::close() {
  const int fd = std::exchange(fd_, -1);
  HEARTH_CHECK(fd >= 0, "output file: closed twice");
  const int synced = retried([&] { return file_calls().sync(fd); });
  const int closed = file_calls().close(fd);
  checked(synced, path_, "sync");
  checked(closed, path_, "close");
}

AppendFile::AppendFile(const std::string& path) : path_(path) {
  const bool is_new = file_info(path).kind == FileKind::none;
  fd_ = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
  try {
    whole_ = size_of_open(fd_, path);
    if (is_new) sync_directory(parent_of(path));
  } catch (...) {
    file_calls().close(fd_);
    throw;
  }
}

AppendFile::~AppendFile() { file_calls().close(fd_); }

void AppendFile::line(std::string_view text) {
  HEARTH_CHECK(text.find('\n') == std::string_view::npos, "a log line with a line break inside");
  record(std::string(text) + '\n');
}

void AppendFile::record(std::string_view bytes) {
  if (torn_) {
    checked(retried([&] { return file_calls().truncate(fd_, whole_); }), path_, "cut a torn line");
    torn_ = false;
  }
  for (std::string_view left = bytes; !left.empty();) {
    const int64_t n = retried([&] { return file_calls().append(fd_, left.data(), left.size()); });
    torn_ = true;  // until the whole line is there
    left.remove_prefix(checked_write(n, path_));
  }
  torn_ = false;
  whole_ += bytes.size();
}

void AppendFile::sync() {
  checked(retried([&] { return file_calls().sync(fd_); }), path_, "sync");
}

void cut_torn_line(const std::string& path) {
  if (file_info(path).kind == FileKind::none) return;
  uint64_t whole = 0;
  {
    const InputFile file(path);
    uint64_t end = file.size();
    std::string piece;
    while (end > 0 && whole == 0) {
      const uint64_t begin = end - std::min<uint64_t>(end, 64 << 10);
      piece.resize(end - begin);
      file.read(piece.data(), piece.size(), begin);
      const size_t newline = piece.rfind('\n');
      if (newline != std::string::npos) whole = begin + newline + 1;
      end = begin;
    }
    if (whole == file.size()) return;
  }
  const int fd = open_file(path, O_WRONLY);
  int result = retried([&] { return file_calls().truncate(fd, whole); });
  if (result >= 0) result = retried([&] { return file_calls().sync(fd); });
  const int closed = file_calls().close(fd);
  checked(result < 0 ? result : closed, path, "cut the torn last line");
}

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::string parent = parent_of(path);
  const std::string temporary = parent + "/.tmp-" + name_of_file(path);
  remove_file(temporary);  // of a process that was killed
  try {
    OutputFile file(temporary);
    file.write(content.data(), content.size());
    file.close();
    rename_replace(temporary, path);
  } catch (...) {
    file_calls().unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent);
}

void copy_file(const std::string& from, const std::string& to) {
  const InputFile source(from);
  OutputFile target(to);
  try {
    target.reserve(source.size());
    std::vector<std::byte> piece(std::min<uint64_t>(source.size(), kCopyPiece));
    for (uint64_t at = 0; at < source.size(); at += piece.size()) {
      const size_t n = std::min<uint64_t>(piece.size(), source.size() - at);
      source.read(piece.data(), n, at);
      target.write(piece.data(), n);
    }
    target.close();
  } catch (...) {
    file_calls().unlink(to.c_str());
    throw;
  }
}

}  // namespace hearth
