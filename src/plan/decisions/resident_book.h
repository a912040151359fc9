// Which experts' weights a device has after the decisions so far, if each of them is carried out before
// the next: what is decided on takes the place of what was used longest ago.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hearth {

class ResidentBook {
 public:
  /// Room for `slots` experts. `experts`: of a layer.
  ResidentBook(int64_t slots, int64_t experts) : slots_(slots), experts_(experts) {}

  bool has(int64_t layer, int64_t expert) const { return at_.contains(number(layer, expert)); }
  /// The device computes the expert.
  void use(int64_t layer, int64_t expert);
  void clear();
  int64_t count() const { return static_cast<int64_t>(at_.size()); }
  /// Layer and expert of all, the one used last first.
  std::vector<std::pair<int32_t, int32_t>> used() const;

 private:
  int64_t number(int64_t layer, int64_t expert) const { return layer * experts_ + expert; }

  const int64_t slots_, experts_;
  std::list<int64_t> used_;  // the last first
  std::unordered_map<int64_t, std::list<int64_t>::iterator> at_;
};

}  // namespace hearth
