// A text that is edited in passes, with a map back to the bytes of the original.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/text_room.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// One pass over a text from left to right that replaces parts of it.
class TextEdit {
 public:
  /// Throws the input error of `room`, if given, when the edit exceeds it.
  explicit TextEdit(std::string_view from, const TextRoom* room = nullptr)
      : from_(from), room_(room) {}

  /// Replaces bytes `part` of the old text. Parts ascend and contain whole characters.
  void replace(TextSpan part, std::string_view by);
  /// Copies up to `position` of the old text, and returns its position in the new text. Later calls
  /// may not go below `position`.
  uint32_t copy_until(uint32_t position);

 private:
  friend class AlignedText;
  struct Change {
    TextSpan to, from;
  };

  /// Bytes that the new text, with `more`, takes beyond the old text.
  uint64_t growth(size_t more) const;

  std::string_view from_;
  const TextRoom* room_;
  std::string text_;
  uint32_t copied_ = 0;          // bytes of from_ already handled
  std::vector<Change> changes_;  // in order; bytes between changes map one to one
  bool edited_ = false;
};

/// The text and its edits so far. A replaced part maps back as a whole. Untouched bytes, and
/// characters replaced by one of the same length, map byte by byte.
class AlignedText {
 public:
  /// The original must outlive this, and so must `room`, which bounds the edits.
  explicit AlignedText(std::string_view original, TextRoom* room = nullptr)
      : text_(original), room_(room) {}
  AlignedText(const AlignedText&) = delete;  // text_ may point into storage_
  AlignedText& operator=(const AlignedText&) = delete;

  std::string_view text() const { return text_; }
  bool unchanged() const { return edits_.empty(); }

  /// Begins an edit of text(). Pass it to apply() when finished.
  TextEdit edit() const { return TextEdit(text_, room_); }
  /// Applies a finished edit of text().
  void apply(TextEdit&& edit);
  /// Keeps bytes `part` only.
  void keep(TextSpan part);

  /// The bytes of the original that this span came from. Empty for an empty span and for inserted
  /// text.
  TextSpan original(TextSpan span) const;

 private:
  using Changes = std::vector<TextEdit::Change>;
  static TextSpan before(const Changes& changes, TextSpan span);

  std::string_view text_;
  TextRoom* room_;
  std::string storage_;         // holds text_ after an edit
  std::vector<Changes> edits_;  // one entry per edit
};

}  // namespace hearth
