// The cargoes of the blocks that travel to a device: weights and accumulators, as items of the loader.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plan/loader/loader_types.h"
#include "plan/loader/slot_layout.h"

namespace hearth {

/// An item of the loader.
struct TravelItem {
  BlockId block = 0;
  Cargo cargo = Cargo::weights;
  SlotLayout layout;
};

/// Numbers the items: of each block, then of its adapter, weights before accumulators.
class TravelItems {
 public:
  static constexpr ItemId kNone = -1;

  /// `blocks`: with a home on the host, without adapters. The table must outlive the object.
  TravelItems(const ParameterTable& table, std::span<const BlockId> blocks,
              const CopyPolicy& policy);

  const std::vector<TravelItem>& items() const { return items_; }
  const TravelItem& item(ItemId id) const { return items_[static_cast<size_t>(id)]; }
  /// kNone: the block does not travel, or has nothing of the kind.
  ItemId find(BlockId block, Cargo cargo) const;
  bool travels(BlockId block) const;
  /// A bug if the block does not travel. Empty if it has nothing of the kind.
  const SlotLayout& layout(BlockId block, Cargo cargo) const;
  std::optional<BlockId> adapter_of(BlockId block) const { return table_.adapter_of(block); }
  std::vector<LoadItem> load_items() const;
  bool is_expert(ItemId id) const;

  /// Whether an update changes some of it.
  bool is_trained(ItemId id) const;

  /// The items of blocks [begin, end): accumulators, and with `weights` the weights that an update
  /// changes, too. Copies of frozen weights stay as they are.
  template <class F>
  void for_items(BlockId begin, BlockId end, bool weights, const F& f) const {
    for (BlockId block = begin; block < end; ++block) {
      const ItemId own = find(block, Cargo::weights), gradient = find(block, Cargo::gradient);
      if (own >= 0 && weights && is_trained(own)) f(own);
      if (gradient >= 0) f(gradient);
    }
  }

  /// The items of a block and of its adapter: weights, and with `gradient` accumulators, too.
  template <class F>
  void for_block(BlockId block, bool gradient, const F& f) const {
    const auto add = [&](BlockId of) {
      for (const Cargo cargo : {Cargo::weights, Cargo::gradient}) {
        if (cargo == Cargo::gradient && !gradient) continue;
        if (const ItemId item = find(of, cargo); item >= 0) f(item);
      }
    };
    add(block);
    if (const auto adapter = adapter_of(block)) add(*adapter);
  }

 protected:
  const ParameterTable& table() const { return table_; }

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
