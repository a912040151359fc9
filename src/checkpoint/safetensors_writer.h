// Safetensors files, written.
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

/// Writes a safetensors file tensor by tensor, in the order given to the constructor, in pieces of
/// any size. Offsets of the entries are set here; {"format": "pt"} is added to metadata without a
/// format (transformers asks for it); the header is padded with spaces to a multiple of 8. The
/// target must not exist. `close` checks that every byte came, syncs, and returns the digest of the
/// whole file. With `chunk_bytes`, the digest of each such piece of the file (header included) is
/// kept instead: `take_chunks`, after close, whose result is then that of no bytes.
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
