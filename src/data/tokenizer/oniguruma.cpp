#include "data/tokenizer/oniguruma.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/error.h"

namespace hearth {
namespace {

// PCRE2's own \s has U+180E, and its \w no marks.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

class Translation {
 public:
  Translation(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        atom_ = out_.size();
        escape(false);
      } else if (c == '[') {
        atom_ = out_.size();
        character_class();
      } else if (c == '(') {
        open_group();
      } else if (c == ')') {
        if (!groups_.empty()) atom_ = groups_.back(), groups_.pop_back();
        copy(1);
      } else if (c == '{') {
        interval();
      } else {
        if (std::string_view("*+?|^$").find(c) == std::string_view::npos) atom_ = out_.size();
        copy(1);
        while (at_ < pattern_.size() && (static_cast<uint8_t>(pattern_[at_]) & 0xc0) == 0x80)
          copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(at_); }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }
  [[noreturn]] void refuse(std::string_view part) const {
    throw input_error(where_ + ": " + quoted(part) + " in the pattern " + quoted(pattern_) +
                      " is not supported by this version");
  }

  void escape(bool in_class) {
    if (rest().size() < 2) refuse(rest());
    const char kind = rest()[1];
    const bool negated = kind == 'S' || kind == 'W';
    if (kind == 's' || kind == 'w' || (negated && !in_class)) {
      if (!in_class) out_ += negated ? "[^" : "[";
      out_ += kind == 's' || kind == 'S' ? kSpaces : kWord;
      if (!in_class) out_ += "]";
      at_ += 2;
      return;
    }
    const auto letter = static_cast<unsigned char>(kind);
    const bool known = std::string_view("pPdDnrtf").find(kind) != std::string_view::npos ||
                       rest().starts_with("\\x{");
    if (std::isdigit(letter) || (std::isalpha(letter) && !known)) refuse(rest().substr(0, 2));
    copy(2);
    while (at_ < pattern_.size() && (static_cast<uint8_t>(pattern_[at_]) & 0xc0) == 0x80) copy(1);
    if ((kind == 'p' || kind == 'P' || kind == 'x') && rest().starts_with('{')) {
      const size_t end = rest().find('}');
      if (end == std::string_view::npos) refuse(rest());
      copy(end + 1);
    }
  }

  void character_class() {
    copy(rest().starts_with("[^") ? 2 : 1);
    if (rest().starts_with("]")) refuse("[]");
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (pattern_[at_] == '\\') {
        escape(true);
      } else if (pattern_[at_] == '[' || rest().starts_with("&&")) {
        refuse(rest().substr(0, 2));
      } else {
        copy(1);
      }
    }
    if (at_ < pattern_.size()) copy(1);
  }

  void open_group() {
    constexpr std::array<std::string_view, 8> kGroups = {
        "(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (rest().starts_with("(*")) refuse("(*");
    if (rest().starts_with("(?")) {
      const auto group = std::find_if(kGroups.begin(), kGroups.end(), [&](std::string_view known) {
        return rest().starts_with(known);
      });
      if (group == kGroups.end()) refuse(rest().substr(0, 3));
      if (!group->ends_with(')')) groups_.push_back(out_.size());
      return copy(group->size());
    }
    groups_.push_back(out_.size());
    copy(1);
  }

  // {n}, {n,}, {n,m}, {,m}; other braces stand for themselves. A + behind an interval repeats it
  // (in PCRE2 it would be possessive), and {n}? makes it optional (there it would be lazy).
  void interval() {
    size_t end = at_ + 1;
    const auto digits = [&] {
      const size_t begin = end;
      while (end < pattern_.size() && std::isdigit(static_cast<unsigned char>(pattern_[end])))
        ++end;
      return pattern_.substr(begin, end - begin);
    };
    const std::string_view least = digits();
    const bool range = end < pattern_.size() && pattern_[end] == ',';
    if (range) ++end;
    const std::string_view most = range ? digits() : "";
    if (end == pattern_.size() || pattern_[end] != '}' || (least.empty() && most.empty())) {
      atom_ = out_.size();
      return copy(1);
    }
    at_ = end + 1;
    const std::string repeated = "{" + std::string(least.empty() ? "0" : least) +
                                 (range ? "," + std::string(most) : "") + "}";
    const bool again = rest().starts_with('+') || (!range && rest().starts_with('?'));
    if (again) out_.insert(atom_, "(?:");
    out_ += repeated;
    if (again) out_ += ")";
  }

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where in out_ the last thing begins that may be repeated
  std::vector<size_t> groups_;  // where the open ones begin
};

}  // namespace

std::string from_oniguruma(std::string_view pattern, const std::string& where) {
  return Translation(pattern, where).run();
}

}  // namespace hearth
