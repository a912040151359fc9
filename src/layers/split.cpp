#include "layers/split.h"

#include <algorithm>

namespace hearth {

void split_by_home(const ParameterTable& table, int32_t layer, std::span<int32_t> split,
                   std::span<int32_t> position) {
  const BlockId first = table.find_block(BlockKind::expert, layer, 0);
  const auto experts = static_cast<int32_t>(position.size());
  const std::span<int32_t> begin = split.subspan(position.size());
  int32_t next = 0;
  for (Place place = 0; place + 1 < std::ssize(begin); ++place) {
    begin[static_cast<size_t>(place)] = next;
    for (int32_t e = 0; e < experts; ++e) {
      if (table.block(first + e).place != place) continue;
      position[static_cast<size_t>(e)] = next;
      split[static_cast<size_t>(next++)] = e;
    }
  }
  HEARTH_CHECK(next == experts, "split: an expert at a place that the split does not know");
  begin.back() = experts;
}

}  // namespace hearth
