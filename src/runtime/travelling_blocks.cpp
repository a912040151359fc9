#include "runtime/travelling_blocks.h"

#include "runtime/residency.h"

namespace hearth {

TravellingBlocks::TravellingBlocks(const ParameterTable& table, const SlotPlan& plan)
    : TravelItems(table, plan.blocks, plan.policy) {
  for (const TravelItem& item : items()) {
    homes_.push_back(home_ranges(table, item.layout, item.cargo));
  }
}

uint64_t TravellingBlocks::home_version(ItemId id) const {
  uint64_t version = 0;
  for (const SlotTensor& tensor : item(id).layout.tensors) {
    static_cast<void>(table().weight(tensor.id));
    version += table().tensor(tensor.id).version;
  }
  return version;
}

}  // namespace hearth
