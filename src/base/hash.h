// Checksums: streaming XXH3-128. For integrity and identity, not for secrecy.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// A 128-bit digest; equal content gives equal digests on every machine.
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;
  std::string hex() const;  // 32 lower-case digits, as the XXH3 tools print it
  /// Reads `hex` back; nullopt for anything else.
  static std::optional<Digest> from_hex(std::string_view text);
  friend bool operator==(const Digest&, const Digest&) = default;
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  void update(const void* data, size_t bytes);
  /// Adds a field of a record, length first, so that ("ab", "c") and ("a", "bc") differ.
  void update_field(std::string_view text);
  void update_u64(uint64_t value);  // little endian
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One digest per `chunk_bytes` of a stream, so that damage to a large file can be located. The
/// last chunk may be shorter; an empty stream has no chunk.
class ChunkHasher {
 public:
  explicit ChunkHasher(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}
  void update(const void* data, size_t bytes);
  /// Ends the last chunk. Call once.
  std::vector<Digest> finish();

 private:
  uint64_t chunk_bytes_;
  uint64_t in_chunk_ = 0;
  Hasher hasher_;
  std::vector<Digest> digests_;
};

Digest digest_of(const void* data, size_t bytes);
Digest digest_of(std::string_view text);

}  // namespace hearth
