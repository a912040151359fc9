#include "data/parquet/run_decoders.h"

#include <algorithm>

namespace hearth {
namespace {

/// Bytes per large block; every known writer has 128 values.
constexpr uint64_t kMostPerBlock = uint64_t{1} << 16;

bool take_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto piece = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(piece & 0x7f) << shift;
    if (piece < 0x80) return true;
  }
  return false;
}

bool take_zigzag(std::string_view& bytes, uint64_t& value) {
  if (!take_varint(bytes, value)) return false;
  value = (value >> 1) ^ (~(value & 1) + 1);
  return true;
}

/// The `width` bits from `bit` on, least significant first; the bytes must have them.
uint64_t bits_at(std::string_view bytes, uint64_t bit, int width) {
  const size_t first = bit / 8;
  const int shift = static_cast<int>(bit % 8);
  uint64_t low = 0;
  std::memcpy(&low, bytes.data() + first, std::min<size_t>(8, bytes.size() - first));
  low >>= shift;
  if (shift + width > 64) {
    low |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[first + 8])) << (64 - shift);
  }
  return width == 64 ? low : low & ((uint64_t{1} << width) - 1);
}

}  // namespace

bool RunDecoder::begin_run() {
  uint64_t header = 0;
  if (!take_varint(bytes_, header)) return false;
  packed_ = (header & 1) != 0;
  left_ = header >> 1;
  if (packed_) {
    // Groups of 8 values. Some writers leave out what pads the last group.
    const uint64_t groups = std::min<uint64_t>(left_, bytes_.size());
    const uint64_t size = std::min<uint64_t>(groups * static_cast<uint64_t>(width_), bytes_.size());
    left_ = std::min(groups * 8, size * 8 / static_cast<uint64_t>(width_));
    values_ = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    bit_ = 0;
    return true;
  }
  const auto size = static_cast<size_t>(width_ + 7) / 8;
  if (bytes_.size() < size) return false;
  value_ = 0;
  std::memcpy(&value_, bytes_.data(), size);
  bytes_.remove_prefix(size);
  return true;
}

bool RunDecoder::next(uint32_t& value) {
  if (width_ == 0) {
    value = 0;
    return true;
  }
  while (left_ == 0) {
    if (!begin_run()) return false;
  }
  --left_;
  value = value_;
  if (packed_) {
    value = static_cast<uint32_t>(bits_at(values_, bit_, width_));
    bit_ += static_cast<uint64_t>(width_);
  }
  return true;
}

DeltaDecoder::DeltaDecoder(std::string_view bytes) : bytes_(bytes) {
  uint64_t per_large = 0;
  if (!take_varint(bytes_, per_large) || !take_varint(bytes_, blocks_) ||
      !take_varint(bytes_, left_) || !take_zigzag(bytes_, value_)) {
    return;
  }
  if (per_large == 0 || per_large > kMostPerBlock || blocks_ == 0 || per_large % blocks_ != 0) {
    return;
  }
  per_block_ = per_large / blocks_;
  damaged_ = per_block_ % 8 != 0;
}

bool DeltaDecoder::begin_block() {
  if (widths_.empty()) {
    if (!take_zigzag(bytes_, least_) || bytes_.size() < blocks_) return false;
    widths_ = bytes_.substr(0, blocks_);
    bytes_.remove_prefix(blocks_);
  }
  width_ = static_cast<uint8_t>(widths_[0]);
  widths_.remove_prefix(1);
  const uint64_t size = per_block_ / 8 * static_cast<uint64_t>(width_);
  if (width_ > 64 || bytes_.size() < size) return false;
  values_ = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  in_block_ = std::min(per_block_, left_);
  bit_ = 0;
  return true;
}

bool DeltaDecoder::next(int64_t& value) {
  if (damaged_ || left_ == 0) return false;
  if (!first_) {
    if (in_block_ == 0 && !begin_block()) {
      damaged_ = true;
      return false;
    }
    value_ += least_ + (width_ == 0 ? 0 : bits_at(values_, bit_, width_));
    bit_ += static_cast<uint64_t>(width_);
    --in_block_;
  }
  first_ = false;
  --left_;
  value = static_cast<int64_t>(value_);
  return true;
}

bool DeltaDecoder::find_end(std::string_view& rest) const {
  DeltaDecoder ahead = *this;
  if (ahead.damaged_) return false;
  if (ahead.left_ > 0) --ahead.left_;  // the first value, in the header
  while (ahead.left_ > 0) {
    if (!ahead.begin_block()) return false;
    ahead.left_ -= ahead.in_block_;
  }
  rest = ahead.bytes_;
  return true;
}

}  // namespace hearth
