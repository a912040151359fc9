// The cargoes of the blocks that travel to a device, with the memory of their homes.
#pragma once

#include <span>
#include <vector>

#include "plan/loader/travel_items.h"

namespace hearth {

struct SlotPlan;

class TravellingBlocks : public TravelItems {
 public:
  /// The table must be bound.
  TravellingBlocks(const ParameterTable& table, const SlotPlan& plan);

  /// The home memory of an item, in the order of its slot.
  std::span<const HomeRange> home(ItemId id) const { return homes_[static_cast<size_t>(id)]; }
  /// Of an item of weights: a number that rises with each update of a tensor in it. Also checks that
  /// the copies at home that it is loaded from are not stale.
  uint64_t home_version(ItemId id) const;

 private:
  std::vector<std::vector<HomeRange>> homes_;  // by item
};

}  // namespace hearth
