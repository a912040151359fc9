// Decompresses gzip, zstd and xz, in pieces.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

/// Decompresses a stream piece by piece; memory does not grow with the stream.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// Decompresses from the front of `packed` to the front of `room`, and shrinks both. If `packed`
  /// is empty, writes the bytes that it still holds. Input error that names the file for a damaged
  /// stream.
  virtual void decode(std::string_view& packed, std::span<char>& room) = 0;
  /// Whether the stream may end here: every member or frame so far is complete.
  virtual bool at_end() const = 0;
};

/// Log2 of the largest zstd window that is accepted: 128 MiB, as in the zstd program.
inline constexpr int kZstdWindowLog = 27;

/// Chooses by the first bytes of a file: gzip (any number of members, trailing zeros allowed) or
/// zstd (any number of frames; verifies checksums that are present) or xz (any number of streams, with as much memory as the window of zstd: at
/// most 128 MiB of memory). nullptr for anything else. Messages start with `name`.
std::unique_ptr<Unpacker> make_unpacker(std::string_view head, const std::string& name,
                                        int zstd_window_log = kZstdWindowLog);

}  // namespace hearth
