// The safetensors format, read and written (research: format specification 2.1 and its checks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/file_ops.h"
#include "base/hash.h"

namespace hearth {

/// An entry of a header. `dtype` is the format's name ("BF16"); offsets are from the start of the
/// data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in order of offset
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t data_begin = 0;  // in the file
};

/// The format's limit of a header, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Parses and checks a header: the whole file is `file_size` bytes, `text` the JSON. Raises an
/// input error naming `source` and the tensor. Refused: what is not exactly the format's grammar,
/// keys that come twice, types the format does not know, shapes whose bytes overflow or are not
/// those of the offsets, data with holes, overlaps or bytes of no tensor, more than 64 dimensions.
/// Takes memory in proportion to the text. Pure: the fuzz target calls it.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t file_size,
                                           const std::string& source);

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
