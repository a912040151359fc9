// Sets of numbers of CPUs and NUMA nodes, as hwloc writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hearth {

inline constexpr int kMostCpus = 65536;  // numbers of CPUs and nodes are below it

class NumberSet {
 public:
  /// Words of 32 bits in hex, the highest first, separated by commas: "0x00000003,0xffffffff". A
  /// first word "0xf...f" stands for all higher numbers, an empty word for 0. nullopt for any other
  /// text, and for numbers of kMostCpus and more.
  static std::optional<NumberSet> parse(std::string_view text);
  static NumberSet all();

  bool contains(int number) const;
  /// Whether `other` contains all numbers of this set.
  bool is_within(const NumberSet& other) const;
  /// Whether the set has this number and no other.
  bool is_just(int number) const;
  /// The lowest number; -1 if the set is empty.
  int first() const;

 private:
  uint32_t word(size_t index) const {
    return index < words_.size() ? words_[index] : rest_ ? ~uint32_t{0} : 0;
  }

  std::vector<uint32_t> words_;  // the lowest first
  bool rest_ = false;            // whether all higher numbers belong to the set
};

}  // namespace hearth
