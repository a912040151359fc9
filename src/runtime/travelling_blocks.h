// The cargoes of the blocks that travel to a device: weights and accumulators, as items of the loader.
#pragma once

#include <optional>
#include <vector>

#include "plan/loader/loader_types.h"
#include "runtime/slot_layout.h"

namespace hearth {

struct SlotPlan;

/// An item of the loader.
struct TravelItem {
  BlockId block = 0;
  Cargo cargo = Cargo::weights;
  SlotLayout layout;
  std::vector<HomeRange> home;
};

/// Numbers the items of a plan: of each block, then of its adapter, weights before accumulators.
class TravellingBlocks {
 public:
  static constexpr ItemId kNone = -1;

  /// The table must be bound.
  TravellingBlocks(const ParameterTable& table, const SlotPlan& plan);

  const std::vector<TravelItem>& items() const { return items_; }
  const TravelItem& item(ItemId id) const { return items_[static_cast<size_t>(id)]; }
  /// kNone: the block does not travel, or has nothing of the kind.
  ItemId find(BlockId block, Cargo cargo) const;
  bool travels(BlockId block) const;
  /// A bug if the block has nothing of the kind.
  const SlotLayout& layout(BlockId block, Cargo cargo) const;
  std::optional<BlockId> adapter_of(BlockId block) const { return table_.adapter_of(block); }
  std::vector<LoadItem> load_items() const;
  bool is_expert(ItemId id) const;
  /// Of an item of weights: a number that rises with each update of a tensor in it. Also checks that
  /// the copies at home that it is loaded from are not stale.
  uint64_t home_version(ItemId id) const;

 private:
  void add(BlockId block, const CopyPolicy& policy);

  struct Numbers {
    ItemId weights = kNone, gradient = kNone;
  };
  const ParameterTable& table_;
  std::vector<TravelItem> items_;
  std::vector<Numbers> by_block_;
};

}  // namespace hearth
