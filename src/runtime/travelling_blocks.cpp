#include "runtime/travelling_blocks.h"

#include "base/error.h"
#include "runtime/residency.h"

namespace hearth {

TravellingBlocks::TravellingBlocks(const ParameterTable& table, const SlotPlan& plan)
    : table_(table), by_block_(table.blocks().size()) {
  for (const BlockId block : plan.blocks) {
    add(block, plan.policy);
    if (const auto adapter = table.adapter_of(block)) add(*adapter, plan.policy);
  }
}

void TravellingBlocks::add(BlockId block, const CopyPolicy& policy) {
  HEARTH_CHECK(table_.block(block).place == kHostPlace, "residency: only homes of the host travel");
  Numbers& numbers = by_block_[static_cast<size_t>(block)];
  HEARTH_CHECK(numbers.weights == kNone && numbers.gradient == kNone,
               "residency: a block travels twice");
  for (const Cargo cargo : {Cargo::weights, Cargo::gradient}) {
    TravelItem item{block, cargo, slot_layout(table_, block, cargo, policy), {}};
    if (item.layout.bytes == 0) continue;
    item.home = home_ranges(table_, item.layout, cargo);
    (cargo == Cargo::weights ? numbers.weights : numbers.gradient) =
        static_cast<ItemId>(items_.size());
    items_.push_back(std::move(item));
  }
}

ItemId TravellingBlocks::find(BlockId block, Cargo cargo) const {
  const Numbers& numbers = by_block_.at(static_cast<size_t>(block));
  return cargo == Cargo::weights ? numbers.weights : numbers.gradient;
}

bool TravellingBlocks::travels(BlockId block) const {
  return find(block, Cargo::weights) >= 0 || find(block, Cargo::gradient) >= 0;
}

const SlotLayout& TravellingBlocks::layout(BlockId block, Cargo cargo) const {
  HEARTH_CHECK(travels(block), "residency: a layout of what does not travel");
  static const SlotLayout nothing;
  const ItemId id = find(block, cargo);
  return id >= 0 ? item(id).layout : nothing;
}

std::vector<LoadItem> TravellingBlocks::load_items() const {
  std::vector<LoadItem> result;
  for (const TravelItem& item : items_) {
    result.push_back({item.layout.bytes, item.cargo == Cargo::gradient});
  }
  return result;
}

bool TravellingBlocks::is_expert(ItemId id) const {
  return table_.block(item(id).block).kind == BlockKind::expert;
}

uint64_t TravellingBlocks::home_version(ItemId id) const {
  uint64_t version = 0;
  for (const SlotTensor& tensor : item(id).layout.tensors) {
    static_cast<void>(table_.weight(tensor.id));
    version += table_.tensor(tensor.id).version;
  }
  return version;
}

}  // namespace hearth
