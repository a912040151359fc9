// Files for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth {

/// A regular file opened for reading. Reading never changes a position: threads may share it.
/// What is not a regular file (directory, FIFO, device, socket) is refused with an input error,
/// as is a file that is missing; no permission and a failing disk are storage errors. A Git LFS
/// pointer or a pickle is the parser's to refuse.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Reads exactly bytes at offset; an input error when the file is shorter (it shrank).
  void read(void* target, size_t bytes, uint64_t offset) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// The whole of a regular file; input error when larger than max_bytes.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

}  // namespace hearth
