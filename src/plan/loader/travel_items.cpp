#include "plan/loader/travel_items.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hearth {

TravelItems::TravelItems(const ParameterTable& table, std::span<const BlockId> blocks,
                         const CopyPolicy& policy)
    : table_(table), by_block_(table.blocks().size()) {
  for (const BlockId block : blocks) {
    add(block, policy);
    if (const auto adapter = table.adapter_of(block)) add(*adapter, policy);
  }
}

void TravelItems::add(BlockId block, const CopyPolicy& policy) {
  HEARTH_CHECK(table_.block(block).place == kHostPlace, "loads: only homes of the host travel");
  Numbers& numbers = by_block_[static_cast<size_t>(block)];
  HEARTH_CHECK(numbers.weights == kNone && numbers.gradient == kNone,
               "loads: a block travels twice");
  for (const Cargo cargo : {Cargo::weights, Cargo::gradient}) {
    TravelItem item{block, cargo, slot_layout(table_, block, cargo, policy)};
    if (item.layout.bytes == 0) continue;
    (cargo == Cargo::weights ? numbers.weights : numbers.gradient) =
        static_cast<ItemId>(items_.size());
    items_.push_back(std::move(item));
  }
}

ItemId TravelItems::find(BlockId block, Cargo cargo) const {
  const Numbers& numbers = by_block_.at(static_cast<size_t>(block));
  return cargo == Cargo::weights ? numbers.weights : numbers.gradient;
}

bool TravelItems::travels(BlockId block) const {
  return find(block, Cargo::weights) >= 0 || find(block, Cargo::gradient) >= 0;
}

const SlotLayout& TravelItems::layout(BlockId block, Cargo cargo) const {
  HEARTH_CHECK(travels(block), "loads: a layout of what does not travel");
  static const SlotLayout nothing;
  const ItemId id = find(block, cargo);
  return id >= 0 ? item(id).layout : nothing;
}

std::vector<LoadItem> TravelItems::load_items() const {
  std::vector<LoadItem> result;
  for (const TravelItem& item : items_) {
    result.push_back({item.layout.bytes, item.cargo == Cargo::gradient});
  }
  return result;
}

bool TravelItems::is_trained(ItemId id) const {
  return std::ranges::any_of(item(id).layout.tensors, [&](const SlotTensor& tensor) {
    return table_.tensor(tensor.id).trainable;
  });
}

bool TravelItems::is_expert(ItemId id) const {
  return table_.block(item(id).block).kind == BlockKind::expert;
}

}  // namespace hearth
