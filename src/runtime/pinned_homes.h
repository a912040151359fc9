// The pinned host memory of what travels to devices.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"

namespace hearth {

struct HostRange {
  std::byte* begin = nullptr;
  size_t bytes = 0;
};

/// Pins the pages of host memory that devices copy from and to, in pieces, by several threads. One
/// for all devices of a run: pinned memory is pinned for each. Where the system refuses, the pieces
/// stay as they are, a warning says how much is pinned, and copies go through a pinned buffer
/// (runtime/piece_copier.h). The memory must outlive the object.
class PinnedHomes {
 public:
  static constexpr size_t kPieceBytes = size_t{256} << 20;

  struct Options {
    size_t piece_bytes = kPieceBytes;  // whole pages
    int threads = 4;
  };

  /// `device`: any that copies. `ranges` in any order; they may overlap.
  PinnedHomes(Device& device, const std::vector<HostRange>& ranges, const Options& options);
  PinnedHomes(Device& device, const std::vector<HostRange>& ranges)
      : PinnedHomes(device, ranges, Options{}) {}

  /// How far a copy that begins at `address` can go at once, at most `bytes`.
  struct Run {
    size_t bytes = 0;
    bool is_pinned = false;
  };
  Run run_at(const std::byte* address, size_t bytes) const;

  size_t bytes() const { return bytes_; }  // of whole pages
  size_t pinned_bytes() const { return pinned_bytes_; }

 private:
  struct Piece {
    std::byte* begin = nullptr;
    size_t bytes = 0;
    std::shared_ptr<void> pin;  // null: refused
  };
  void pin(Device& device, int threads);

  std::vector<Piece> pieces_;  // by address
  size_t bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace hearth
