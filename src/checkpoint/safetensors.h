// Safetensors files, read in place, and the types of the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/file_ops.h"
#include "checkpoint/safetensors_header.h"

namespace hearth {

/// A safetensors file opened for reading; tensors are read in place by pread. Git LFS pointers and
/// pickles are refused with a sentence of help; a file that shrinks later is an input error.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  /// Bytes [offset, offset + bytes) of a tensor's data.
  void read(const SafetensorsEntry& entry, void* target, size_t bytes, uint64_t offset) const;

 private:
  InputFile file_;
  SafetensorsHeader header_;
};

/// The format's name of an element type, and back (nullopt: a type this program does not compute
/// with). `safetensors_bits` knows all types of the format: bits of an element.
std::string safetensors_name(DType type);
std::optional<DType> safetensors_dtype(std::string_view name);
std::optional<int> safetensors_bits(std::string_view name);

/// Bytes of an entry by its type and shape; nullopt when they overflow or are no whole number.
std::optional<uint64_t> safetensors_bytes(const SafetensorsEntry& entry);

/// "[3, 4]", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace hearth
