// A text that is changed step by step and keeps the way back to the bytes it began with.
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
  /// Input errors of `room`, where given: the edit needs more than is left.
  explicit TextEdit(std::string_view from, const TextRoom* room = nullptr)
      : from_(from), room_(room) {}

  /// Replaces bytes `part` of the old text; parts ascend. Whole characters.
  void replace(TextSpan part, std::string_view by);
  /// Where the old text's `position` comes to lie in the new one; no later call may reach below it.
  uint32_t copy_until(uint32_t position);

 private:
  friend class AlignedText;
  struct Change {
    TextSpan to, from;
  };

  /// Bytes that are taken beyond those of the old text, with `more` to come.
  uint64_t growth(size_t more) const;

  std::string_view from_;
  const TextRoom* room_;
  std::string text_;
  uint32_t copied_ = 0;          // bytes of from_ that are dealt with
  std::vector<Change> changes_;  // in order; between them bytes map one to one
  bool edited_ = false;
};

/// The text and its edits so far. A part that an edit replaced maps back as a whole; what no edit
/// touched maps byte by byte, and so does a character replaced by one of the same length.
class AlignedText {
 public:
  /// The original must outlive this, and so must `room`, which bounds its edits where given.
  explicit AlignedText(std::string_view original, TextRoom* room = nullptr)
      : text_(original), room_(room) {}
  AlignedText(const AlignedText&) = delete;  // text_ may look into the last edit
  AlignedText& operator=(const AlignedText&) = delete;

  std::string_view text() const { return text_; }
  bool unchanged() const { return edits_.empty(); }

  /// An edit of text(), to be given to apply().
  TextEdit edit() const { return TextEdit(text_, room_); }
  /// Takes a finished edit of text().
  void apply(TextEdit&& edit);
  /// Keeps bytes `part` only.
  void keep(TextSpan part);

  /// Bytes of the original that the bytes of the text came from. Empty for an empty span, and for
  /// what an edit put where nothing was.
  TextSpan original(TextSpan span) const;

 private:
  using Changes = std::vector<TextEdit::Change>;
  static TextSpan before(const Changes& changes, TextSpan span);

  std::string_view text_;
  TextRoom* room_;
  std::string storage_;         // of text_, once edited
  std::vector<Changes> edits_;  // one each
};

}  // namespace hearth
