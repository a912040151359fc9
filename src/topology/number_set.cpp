#include "topology/number_set.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace hearth {
namespace {

constexpr std::string_view kAllHigher = "0xf...f";

std::optional<uint32_t> parse_word(std::string_view text) {
  if (text.empty()) return 0;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint32_t word = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return word;
}

}  // namespace

NumberSet NumberSet::all() {
  NumberSet set;
  set.rest_ = true;
  return set;
}

std::optional<NumberSet> NumberSet::parse(std::string_view text) {
  NumberSet set;
  if (text.starts_with(kAllHigher)) {
    set.rest_ = true;
    text.remove_prefix(kAllHigher.size());
    if (text.empty()) return set;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  if (std::count(text.begin(), text.end(), ',') >= kMostCpus / 32) return std::nullopt;
  while (true) {
    const size_t comma = text.rfind(',');
    const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    const std::optional<uint32_t> word = parse_word(text.substr(begin));
    if (!word) return std::nullopt;
    set.words_.push_back(*word);
    if (begin == 0) return set;
    text = text.substr(0, comma);
  }
}

bool NumberSet::contains(int number) const {
  if (number < 0) return false;
  return (word(static_cast<size_t>(number) / 32) >> (number % 32) & 1) != 0;
}

bool NumberSet::is_within(const NumberSet& other) const {
  if (rest_ && !other.rest_) return false;
  const size_t words = rest_ ? std::max(words_.size(), other.words_.size()) : words_.size();
  for (size_t i = 0; i < words; ++i) {
    if ((word(i) & ~other.word(i)) != 0) return false;
  }
  return true;
}

bool NumberSet::is_just(int number) const {
  if (rest_ || !contains(number)) return false;
  int count = 0;
  for (const uint32_t word : words_) count += std::popcount(word);
  return count == 1;
}

int NumberSet::first() const {
  for (size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] != 0) return static_cast<int>(i * 32) + std::countr_zero(words_[i]);
  }
  return rest_ ? static_cast<int>(words_.size() * 32) : -1;
}

}  // namespace hearth
