// Writes safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_ops.h"
#include "base/hash.h"
#include "checkpoint/safetensors_header.h"

namespace hearth {

/// Writes a safetensors file, tensor by tensor in the order of `entries`, in pieces of any size.
/// Sets the offsets of the entries. Adds {"format": "pt"} to metadata without a format, as
/// transformers requires, and pads the header with spaces to a multiple of 8. The target must not
/// exist. `close` checks that every byte was written, syncs, and returns the digest of the whole
/// file. With `chunk_bytes`, it keeps a digest per chunk of the file (header included) instead;
/// `take_chunks` returns them after `close`, whose own result is then the digest of no bytes.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, std::vector<SafetensorsEntry> entries,
                    std::vector<std::pair<std::string, std::string>> metadata,
                    uint64_t chunk_bytes = 0);
  void write(const void* data, size_t bytes);
  Digest close();
  uint64_t file_bytes() const { return file_.written(); }
  std::vector<Digest> take_chunks() { return chunks_ ? chunks_->finish() : std::vector<Digest>(); }

 private:
  void put(const void* data, size_t bytes);

  OutputFile file_;
  Hasher hasher_;
  std::optional<ChunkHasher> chunks_;
  uint64_t data_bytes_ = 0;
  uint64_t written_ = 0;
};

}  // namespace hearth
