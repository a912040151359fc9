// Caches the ids of short words, because most words of a text repeat.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace hearth {

/// A direct-mapped cache: one slot per hash, which keeps the last word. One cache per thread.
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

  /// Clears the cache if it belongs to another model. `owner` identifies the model.
  void belong_to(uint64_t owner) {
    if (owner == owner_) return;
    owner_ = owner;
    slots_.assign(kSlots, Entry());
  }

  /// The slot for a word of 1 to kLongestWord bytes. It may hold another word; check with holds().
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
