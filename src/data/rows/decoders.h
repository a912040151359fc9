// Unpacking of gzip and zstd, in pieces.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

/// A packed stream that is fed and drained piece by piece; memory does not grow with it.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// Takes bytes from the front of `packed` and puts unpacked ones at the front of `room`, both of
  /// which shrink. With nothing left to take it gives out what it still holds. Input error that
  /// names the file for a damaged stream.
  virtual void decode(std::string_view& packed, std::span<char>& room) = 0;
  /// Whether the stream may end here: every member or frame so far is whole.
  virtual bool at_end() const = 0;
};

/// Largest window of a zstd frame that is read, as a power of two: 128 MiB, the limit of the zstd
/// program too.
inline constexpr int kZstdWindowLog = 27;

/// By the first bytes of a file: gzip (any number of members, zeros behind them) or zstd (any number
/// of frames, checksums verified where there are some). nullptr for anything else. `name` starts the
/// messages.
std::unique_ptr<Unpacker> make_unpacker(std::string_view head, const std::string& name,
                                        int zstd_window_log = kZstdWindowLog);

}  // namespace hearth
