#include "runtime/piece_copier.h"

#include <algorithm>
#include <cstring>

namespace hearth {
namespace {

std::unique_ptr<Stream> link_stream(Device& device, StreamUse use) {
  StreamOptions options;
  options.name = use == StreamUse::copy_in ? "loads" : "loads home";
  options.use = use;
  return device.create_stream(options);
}

}  // namespace

PieceCopier::PieceCopier(Device& device, StreamUse use, const PinnedHomes& homes)
    : device_(device),
      in_(use == StreamUse::copy_in),
      homes_(homes),
      stream_(link_stream(device, use)) {
  const size_t bytes = pinned_bytes(homes);
  if (bytes == 0) return;
  pinned_ =
      device.reserve(in_ ? "buffer of loads" : "buffer of loads home", SpaceKind::pinned, bytes);
  for (size_t i = 0; i < 2; ++i) {
    buffers_[i].data = pinned_->data() + i * kBufferBytes;
    buffers_[i].passed = device.create_event();
  }
}

size_t PieceCopier::copy(const Piece& piece, std::span<const HomeRange> home, std::byte* slot) {
  if (piece.kind == PieceKind::clear) {
    device_.fill(*stream_, slot, std::byte{0}, piece.bytes);
    return 0;
  }
  size_t moved = 0;
  const size_t piece_end = piece.home_offset + piece.bytes;
  for (const HomeRange& range : home) {
    size_t at = std::max(range.offset, piece.home_offset);
    const size_t end = std::min(range.offset + range.bytes, piece_end);
    while (at < end) {
      std::byte* const home_at = range.home + (at - range.offset);
      const PinnedHomes::Run run = homes_.run_at(home_at, end - at);
      if (run.is_pinned) {
        copy_run(slot + at, home_at, run.bytes);
      } else {
        through_buffer(slot + at, home_at, run.bytes);
      }
      at += run.bytes;
      moved += run.bytes;
    }
  }
  if (!in_) {
    for (size_t buffer = 0; buffer < 2; ++buffer) settle((turn_ + buffer) % 2);
  }
  return moved;
}

void PieceCopier::copy_run(std::byte* slot, std::byte* home, size_t bytes) {
  if (in_) {
    device_.copy(*stream_, slot, home, bytes);
  } else {
    device_.copy(*stream_, home, slot, bytes);
  }
}

void PieceCopier::through_buffer(std::byte* slot, std::byte* home, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kBufferBytes) {
    settle(turn_);
    Buffer& buffer = buffers_[turn_];
    turn_ = 1 - turn_;
    buffer.bytes = std::min(kBufferBytes, bytes - at);
    buffer.home = home + at;
    if (in_) std::memcpy(buffer.data, buffer.home, buffer.bytes);
    copy_run(slot + at, buffer.data, buffer.bytes);
    buffer.passed->reset();
    device_.record(*buffer.passed, *stream_);
    buffer.is_busy = true;
  }
}

void PieceCopier::settle(size_t index) {
  Buffer& buffer = buffers_[index];
  if (!buffer.is_busy) return;
  buffer.passed->synchronize();
  if (!in_) std::memcpy(buffer.home, buffer.data, buffer.bytes);
  buffer.is_busy = false;
}

}  // namespace hearth
