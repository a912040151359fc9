// The ids of short words, kept from word to word: most words of a text come again and again.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace hearth {

/// Each word has one slot, where the last word with that hash stays: bounded, and quick to look up.
/// One a thread.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 24;
  static constexpr size_t kMostIds = 6;

  struct Entry {
    uint8_t length = 0;                              // of the word; 0: free
    uint8_t count = 0;                               // of its ids
    std::array<uint8_t, kMostIds> begins{}, ends{};  // in the word
    std::array<char, kLongestWord> word{};
    std::array<int32_t, kMostIds> ids{};
  };

  /// Empties the cache when the words were another model's (`owner` is a number of its own).
  void belong_to(uint64_t owner) {
    if (owner == owner_) return;
    owner_ = owner;
    slots_.assign(kSlots, Entry());
  }

  /// The slot of a word of 1 to kLongestWord bytes; it holds that word only if holds() says so.
  Entry& slot(std::string_view word) { return slots_[hash(word) & (kSlots - 1)]; }
  static bool holds(const Entry& entry, std::string_view word) {
    return entry.length == word.size() &&
           std::memcmp(entry.word.data(), word.data(), word.size()) == 0;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 15;

  static uint64_t hash(std::string_view word) {
    std::array<uint64_t, kLongestWord / 8> parts{};
    std::memcpy(parts.data(), word.data(), word.size());
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    uint64_t mixed = word.size();
    for (const uint64_t part : parts) mixed = (mixed ^ part) * kOdd, mixed ^= mixed >> 32;
    return mixed;
  }

  uint64_t owner_ = 0;
  std::vector<Entry> slots_;
};

}  // namespace hearth
