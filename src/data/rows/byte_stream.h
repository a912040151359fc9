// The bytes of a data file or of standard input, decompressed.
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

/// A file name from its last dot, in lower case; empty without a dot.
std::string extension_of(const std::string& path);

/// .gz, .zst or .xz.
bool is_packing(const std::string& extension);

/// The name of a data file in messages: "standard input" for -.
std::string shown_name(const std::string& path);

/// Reads once, from start to end, in pieces. Recognises gzip, zstd and xz by their first bytes.
class ByteStream {
 public:
  /// `-` is standard input. Input error for anything but a regular file, and for an uncompressed
  /// file named .gz, .zst or .xz. Input error for other formats: Git LFS pointer, pickle, bzip2,
  /// Parquet, Arrow; also Parquet and Arrow by name.
  explicit ByteStream(const std::string& path);

  /// Appends up to `most` decompressed bytes to `text`; false at the end. Input error if a
  /// compressed file is damaged or truncated.
  bool append_to(std::string& text, size_t most);

  /// Reads the rest of the file without decompressing it, for the digest.
  void skip_rest();

  const std::string& name() const { return name_; }   // for messages
  uint64_t bytes_read() const { return offset_; }     // of the file, before decompression
  Digest digest() const { return hasher_.digest(); }  // of the bytes read

 private:
  size_t read_file(char* target, size_t most);
  size_t unpack(char* target, size_t most);

  std::string name_;
  std::optional<InputFile> file_;  // none: standard input
  uint64_t offset_ = 0;
  Hasher hasher_;
  std::string piece_;      // of the file, compressed
  std::string_view left_;  // rest of piece_ that is not consumed yet
  std::unique_ptr<Unpacker> decoder_;
  bool unpacked_any_ = false;
};

}  // namespace hearth
