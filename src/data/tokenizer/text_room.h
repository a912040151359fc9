// A bound on what the parts of a tokenizer.json may make of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth {

/// How much memory the edits of a text may take beyond the text itself: normalizers and decoders of
/// a hostile file multiply (ten Replaces, each by ten). One for each text; for one thread.
class TextRoom {
 public:
  /// `where` (file and part) starts the message. Room for `factor` bytes per byte of the text.
  explicit TextRoom(std::string where, uint64_t factor = 64)
      : where_(std::move(where)), factor_(factor) {}

  /// The text has `bytes` (more).
  void add_text(uint64_t bytes);
  /// Input error if an edit under way needs more than is left.
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

/// Components of one kind in a file: each is a pass over every text.
inline constexpr size_t kMaxComponents = 1000;
[[noreturn]] void refuse_components(const std::string& where);

}  // namespace hearth
