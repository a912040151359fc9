// Writes a GGUF file, tensor by tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/output_file.h"
#include "checkpoint/gguf_metadata.h"
#include "checkpoint/gguf_types.h"

namespace hearth {

/// `shape` is ggml's: the row length first, so a matrix [out, in] is {in, out}.
struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;
  GgufType type = GgufType::f32;

  uint64_t bytes() const;
};

/// GGUF version 3: header, metadata, the list of tensors, then their data, each at a multiple of 32
/// bytes. (docs/gguf.md of ggml.) Memory: the header.
class GgufWriter {
 public:
  /// Makes the file, which must not exist, and writes all but the data.
  GgufWriter(const std::string& path, const GgufMetadata& metadata,
             const std::vector<GgufTensor>& tensors);
  /// The next bytes of the tensors, in the order of the list, without padding. Pieces do not cross
  /// tensors.
  void write(const void* data, size_t bytes);
  /// Syncs and closes. A bug if data are missing. Returns the digest of the file.
  Digest close();

 private:
  void put(const void* data, size_t bytes);
  void pad();

  OutputFile file_;
  Hasher hasher_;
  std::vector<uint64_t> sizes_;  // by tensor
  size_t tensor_ = 0;
  uint64_t in_tensor_ = 0;
};

}  // namespace hearth
