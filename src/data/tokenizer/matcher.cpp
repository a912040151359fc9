#include "data/tokenizer/matcher.h"

#include <array>

#include "base/error.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

std::variant<Regex, std::string, Matcher::CharClass> read_pattern(const Json& pattern,
                                                                  const std::string& where) {
  allow_keys(pattern, where, {"String", "Regex"});
  if (pattern.as_object().size() != 1) {
    throw input_error(where + ": expected either String or Regex");
  }
  if (pattern.find("Regex") != nullptr) return Regex(read_string(pattern, "Regex", where), where);
  const std::string& text = read_string(pattern, "String", where);
  if (text.empty()) return Regex("", where);  // matches everywhere
  return text;
}

// Takes what matches and what lies between in turn, and forms pieces.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, uint32_t offset, std::vector<TextSpan>& pieces)
      : behavior_(behavior), offset_(offset), pieces_(pieces), first_(pieces.size()) {}

  void take(TextSpan part, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!is_match) push(part);
        break;
      case SplitBehavior::isolated: push(part); break;
      case SplitBehavior::contiguous: is_match == last_ ? extend(part) : push(part); break;
      case SplitBehavior::merged_with_previous:
        is_match && !last_ ? extend(part) : push(part);
        break;
      case SplitBehavior::merged_with_next: last_ && !is_match ? extend(part) : push(part); break;
    }
    last_ = is_match;
  }

  // Empty matches cut, but are no pieces.
  void finish() {
    std::erase_if(pieces_, [](TextSpan piece) { return piece.begin == piece.end; });
  }

 private:
  void push(TextSpan part) { pieces_.push_back({part.begin + offset_, part.end + offset_}); }
  void extend(TextSpan part) {
    if (pieces_.size() == first_) return push(part);
    pieces_.back().end = part.end + offset_;
  }

  SplitBehavior behavior_;
  uint32_t offset_;
  std::vector<TextSpan>& pieces_;
  size_t first_;
  bool last_ = false;
};

}  // namespace

Matcher::Matcher(const Json& pattern, const std::string& where)
    : kind_(read_pattern(pattern, where)) {}

void split(std::string_view text, const SplitRule& rule, uint32_t offset,
           std::vector<TextSpan>& pieces) {
  const auto size = static_cast<uint32_t>(text.size());
  if (rule.behavior == SplitBehavior::isolated) {  // matches or not: every part is a piece
    uint32_t done = 0;
    const auto piece_until = [&](uint32_t end) {
      if (end > done) pieces.push_back({offset + done, offset + end});
      done = end;
    };
    rule.matcher.for_each(text, [&](TextSpan match) {
      piece_until(match.begin);
      piece_until(match.end);
    });
    return piece_until(size);
  }
  std::vector<TextSpan> own;
  Splitter splitter(rule.behavior, offset, own);
  uint32_t done = 0;
  rule.matcher.for_each(text, [&](TextSpan match) {
    if (match.begin != done) splitter.take({done, match.begin}, rule.invert);
    splitter.take(match, !rule.invert);
    done = match.end;
  });
  if (done != size) splitter.take({done, size}, rule.invert);
  splitter.finish();
  pieces.insert(pieces.end(), own.begin(), own.end());
}

SplitBehavior read_behavior(const Json& value, const std::string& where) {
  constexpr std::array<std::string_view, 5> kNames = {"Removed", "Isolated", "MergedWithPrevious",
                                                      "MergedWithNext", "Contiguous"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (value.is_string() && value.as_string() == kNames[i]) return static_cast<SplitBehavior>(i);
  }
  refuse_value(where, value);
}

}  // namespace hearth
