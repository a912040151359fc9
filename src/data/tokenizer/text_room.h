// Bounds how much a tokenizer.json may expand a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth {

/// A memory budget for edits of a text, beyond the text itself. Normalizers and decoders of a
/// hostile file multiply (ten Replaces, each by ten). One per text; not thread-safe.
class TextRoom {
 public:
  /// The message starts with `where` (file and part). Allows `factor` bytes per byte of the text.
  explicit TextRoom(std::string where, uint64_t factor = 64)
      : where_(std::move(where)), factor_(factor) {}

  /// Adds `bytes` of text, which enlarge the budget.
  void add_text(uint64_t bytes);
  /// Input error if fewer than `bytes` are left.
  void require(uint64_t bytes) const {
    if (bytes > left_) refuse();
  }
  void take(uint64_t bytes) {
    require(bytes);
    left_ -= bytes;
  }

 private:
  [[noreturn]] void refuse() const;

  static constexpr uint64_t kSlack = uint64_t{64} << 10;
  std::string where_;
  uint64_t factor_;
  uint64_t text_ = 0;
  uint64_t left_ = kSlack;
};

/// Limit on components of one kind in a file, because each is a pass over every text.
inline constexpr size_t kMaxComponents = 1000;
[[noreturn]] void refuse_components(const std::string& where);

}  // namespace hearth
