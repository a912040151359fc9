// Files for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth {

/// A regular file opened for reading. Reads take an offset, so threads may share it. Input error if
/// the file is missing or not regular (directory, FIFO, device, socket). Storage error if
/// permission is missing or the disk fails. Parsers refuse Git LFS pointers and pickles.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Reads exactly `bytes` at `offset`. Input error if the file is shorter because it shrank.
  void read(void* target, size_t bytes, uint64_t offset) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// The content of a regular file. Input error if it is larger than max_bytes.
std::string read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

}  // namespace hearth
