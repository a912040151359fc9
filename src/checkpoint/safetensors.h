// Reads safetensors files in place; element types of the format.
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

/// A safetensors file opened for reading; pread reads the tensors. Git LFS pointers and pickles are
/// refused with advice. Input error if the file shrinks later.
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

/// The format's name of an element type, and back (nullopt: this program does not compute with the
/// type). `safetensors_bits` gives bits per element for all types of the format.
std::string safetensors_name(DType type);
std::optional<DType> safetensors_dtype(std::string_view name);
std::optional<int> safetensors_bits(std::string_view name);

/// Bytes of an entry from its type and shape; nullopt if they overflow or are not a whole number.
std::optional<uint64_t> safetensors_bytes(const SafetensorsEntry& entry);

/// "[3, 4]", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace hearth
