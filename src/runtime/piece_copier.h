// Copies pieces between the homes of what travels and the slots of a device, in one direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/device.h"
#include "plan/loader/loader_types.h"
#include "plan/loader/slot_layout.h"
#include "runtime/pinned_homes.h"

namespace hearth {

/// One direction of a device's link: a stream and, where homes are not pinned, two pinned buffers
/// that copies pass through by turns. Used by one thread.
class PieceCopier {
 public:
  static constexpr size_t kBufferBytes = size_t{4} << 20;
  /// Pinned host memory that a copier takes; 0 if every home is pinned.
  static size_t pinned_bytes(const PinnedHomes& homes) {
    return homes.pinned_bytes() < homes.bytes() ? 2 * kBufferBytes : 0;
  }

  /// `use`: copy_in or copy_out. All must outlive the copier.
  PieceCopier(Device& device, StreamUse use, const PinnedHomes& homes);

  /// Issues the copies of a piece of an item, whose home is `home` and whose slot begins at `slot`.
  /// Returns the bytes that cross the link. Through the pinned buffers a store ends before it
  /// returns. The rest ends with the stream.
  size_t copy(const Piece& piece, std::span<const HomeRange> home, std::byte* slot);

  Stream& stream() { return *stream_; }

 private:
  void copy_run(std::byte* slot, std::byte* home, size_t bytes);
  void through_buffer(std::byte* slot, std::byte* home, size_t bytes);
  /// Waits until the buffer is free, and moves home what a store has left in it.
  void settle(size_t buffer);

  struct Buffer {
    std::byte* data = nullptr;
    std::unique_ptr<Event> passed;  // its copy
    bool is_busy = false;
    std::byte* home = nullptr;  // of a store
    size_t bytes = 0;
  };

  Device& device_;
  const bool in_;
  const PinnedHomes& homes_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> pinned_;
  Buffer buffers_[2];
  size_t turn_ = 0;
};

}  // namespace hearth
