#include "data/rows/element_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/rows/line_reader.h"

namespace hearth {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Follows brackets and quotes through the text of a value.
class ValueEnd {
 public:
  /// Whether the value ends with this character.
  bool ends_with(char c) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        return depth_ == 0;
      }
      return false;
    }
    switch (c) {
      case '"': in_string_ = true; return false;
      case '{':
      case '[': ++depth_; return false;
      case '}':
      case ']': return --depth_ <= 0;
      default: return false;
    }
  }

 private:
  bool in_string_ = false, escaped_ = false;
  int64_t depth_ = 0;
};

}  // namespace

ElementReader::ElementReader(ByteStream& bytes, std::string head)
    : bytes_(bytes), buffer_(std::move(head)) {
  if (buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

void ElementReader::refuse(const std::string& what) const {
  throw input_error(bytes_.name() + ":" + std::to_string(line_) + ": " + what);
}

// Another piece behind what is left; false at the end of the text.
bool ElementReader::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  // The capacity does not double beyond kMaxLine.
  reserve_for_line(buffer_);
  return bytes_.append_to(buffer_, std::min(kTextPiece, kMaxLine - buffer_.size()));
}

// The next character that is not blank, where at_ then stands; nullopt at the end of the text.
std::optional<char> ElementReader::next_character() {
  uint64_t blanks = 0;
  while (true) {
    for (; at_ < buffer_.size(); ++at_, ++blanks) {
      if (!is_blank(buffer_[at_])) return buffer_[at_];
      line_ += buffer_[at_] == '\n' ? 1 : 0;
    }
    if (blanks >= kMaxLine) refuse("48 MiB of blanks; remove them");
    if (!fill()) return std::nullopt;
  }
}

// The value that starts at at_: a string, or what stands in brackets, or else all up to a comma, a
// bracket or a blank.
std::string_view ElementReader::take_element() {
  const char start = buffer_[at_];
  const bool bounded = start == '{' || start == '[' || start == '"';
  ValueEnd end;
  size_t size = 0;
  while (true) {
    for (; at_ + size < buffer_.size(); ++size) {
      const char c = buffer_[at_ + size];
      if (bounded ? end.ends_with(c) : is_blank(c) || c == ',' || c == ']' || c == '}') {
        size += bounded ? 1 : 0;
        const std::string_view element = std::string_view(buffer_).substr(at_, size);
        line_ += std::count(element.begin(), element.end(), '\n');
        at_ += size;
        return element;
      }
    }
    if (size >= kMaxLine) refuse("a row of 48 MiB or more; split it");
    if (!fill()) refuse("the file ends inside this row");
  }
}

std::optional<std::string_view> ElementReader::next() {
  auto c = next_character();
  if (first_) {
    ++at_;  // the bracket that opens the array
    c = next_character();
  } else if (c == ',') {
    ++at_;
    c = next_character();
    if (c == ']') refuse("a comma after the last row; remove it");
  } else if (c && c != ']') {
    refuse("expected ',' or ']' after a row, found " + quoted(std::string(1, *c)));
  }
  if (!c) refuse("the file ends before the ']' of the array");
  if (c == ']') {
    ++at_;
    if (next_character()) refuse("expected the end of the file after the array");
    return std::nullopt;
  }
  if (c == ',' || c == '}') refuse("expected a row, found " + quoted(std::string(1, *c)));
  first_ = false;
  element_line_ = line_;
  return take_element();
}

}  // namespace hearth
