#include "layers/split.h"

#include <algorithm>

namespace hearth {

namespace {

/// place_of(e): of expert e. `first`: experts that come first at their places, in this order.
template <class PlaceOf>
void split_by(const PlaceOf& place_of, std::span<int32_t> split, std::span<int32_t> position,
              std::span<const int32_t> first = {}) {
  const std::span<int32_t> begin = split.subspan(position.size());
  int32_t next = 0;
  std::ranges::fill(position, -1);
  for (Place place = 0; place + 1 < std::ssize(begin); ++place) {
    begin[static_cast<size_t>(place)] = next;
    const auto add = [&](int32_t expert) {
      const auto e = static_cast<size_t>(expert);
      if (place_of(e) != place || position[e] >= 0) return;
      position[e] = next;
      split[static_cast<size_t>(next++)] = expert;
    };
    for (const int32_t expert : first) add(expert);
    for (int32_t e = 0; e < std::ssize(position); ++e) add(e);
  }
  HEARTH_CHECK(next == std::ssize(position),
               "split: an expert at a place that the split does not know");
  begin.back() = next;
}

}  // namespace

void split_by_places(std::span<const Place> places, std::span<int32_t> split,
                     std::span<int32_t> position, std::span<const int32_t> first) {
  split_by([&](size_t e) { return places[e]; }, split, position, first);
}

void split_by_home(const ParameterTable& table, int32_t layer, std::span<int32_t> split,
                   std::span<int32_t> position) {
  const BlockId first = table.find_block(BlockKind::expert, layer, 0);
  split_by([&](size_t e) { return table.block(first + static_cast<BlockId>(e)).place; }, split,
           position);
}

}  // namespace hearth
