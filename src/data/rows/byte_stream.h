// The bytes of a data file or of standard input, unpacked on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_ops.h"
#include "base/hash.h"
#include "data/rows/decoders.h"

namespace hearth {

/// The end of a file's name from its last dot on, in lower case; empty without one.
std::string extension_of(const std::string& path);

/// A data file's name for people: "standard input" for -.
std::string shown_name(const std::string& path);

/// Reads once, from start to end, in pieces. gzip and zstd are known by their first bytes.
class ByteStream {
 public:
  /// `-` is standard input. Input error for what is no regular file, for a Git LFS pointer, a pickle,
  /// Parquet and Arrow (by name too), and for a name that ends in .gz or .zst without reason.
  explicit ByteStream(const std::string& path);

  /// Appends up to `most` unpacked bytes to `text`; false at the end. Input error for a packed file
  /// that is damaged or cut off.
  bool append_to(std::string& text, size_t most);

  const std::string& name() const { return name_; }   // for people
  uint64_t bytes_read() const { return offset_; }     // of the file, packed
  Digest digest() const { return hasher_.digest(); }  // of these

 private:
  size_t read_file(char* target, size_t most);
  size_t unpack(char* target, size_t most);

  std::string name_;
  std::optional<InputFile> file_;  // none: standard input
  uint64_t offset_ = 0;
  Hasher hasher_;
  std::string piece_;      // of the file
  std::string_view left_;  // of the piece: not given out, or not unpacked yet
  std::unique_ptr<Unpacker> decoder_;
  bool unpacked_any_ = false;
};

}  // namespace hearth
