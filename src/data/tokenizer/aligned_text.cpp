#include "data/tokenizer/aligned_text.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth {
namespace {

uint32_t size_of(std::string_view text) {
  HEARTH_CHECK(text.size() < UINT32_MAX, "a text below 4 GiB");
  return static_cast<uint32_t>(text.size());
}

}  // namespace

uint32_t TextEdit::copy_until(uint32_t position) {
  text_.append(from_, copied_, position - copied_);
  copied_ = position;
  return size_of(text_);
}

uint64_t TextEdit::growth(size_t more) const {
  const uint64_t text = text_.size() + more;
  return (text > copied_ ? text - copied_ : 0) + changes_.size() * sizeof(Change);
}

void TextEdit::replace(TextSpan part, std::string_view by) {
  const std::string_view old = from_.substr(part.begin, part.end - part.begin);
  if (old == by) return;
  edited_ = true;
  const uint32_t at = copy_until(part.begin);
  if (room_ != nullptr) room_->require(growth(by.size()));
  text_ += by;
  copied_ = part.end;
  const bool one_for_one = old.size() == by.size() && decode_utf8(old).length == old.size() &&
                           decode_utf8(by).length == by.size();
  if (!one_for_one) changes_.push_back({{at, size_of(text_)}, part});
}

void AlignedText::apply(TextEdit&& edit) {
  if (!edit.edited_) return;
  edit.copy_until(static_cast<uint32_t>(text_.size()));
  if (room_ != nullptr) room_->take(edit.growth(0));
  storage_ = std::move(edit.text_);
  text_ = storage_;
  edits_.push_back(std::move(edit.changes_));
}

void AlignedText::keep(TextSpan part) {
  TextEdit edit = this->edit();
  edit.replace({0, part.begin}, "");
  edit.replace({part.end, static_cast<uint32_t>(text_.size())}, "");
  apply(std::move(edit));
}

TextSpan AlignedText::before(const Changes& changes, TextSpan span) {
  const auto of_byte = [&](uint32_t byte) -> TextSpan {
    const auto after = std::upper_bound(changes.begin(), changes.end(), byte,
                                        [](uint32_t position, const TextEdit::Change& change) {
                                          return position < change.to.begin;
                                        });
    if (after == changes.begin()) return {byte, byte + 1};
    const TextEdit::Change& change = *std::prev(after);
    if (byte < change.to.end) return change.from;
    const uint32_t moved = change.from.end + (byte - change.to.end);
    return {moved, moved + 1};
  };
  const uint32_t begin = of_byte(span.begin).begin;
  return {begin, span.begin == span.end ? begin : of_byte(span.end - 1).end};
}

TextSpan AlignedText::original(TextSpan span) const {
  for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit) {
    if (!edit->empty()) span = before(*edit, span);
  }
  return span;
}

}  // namespace hearth
