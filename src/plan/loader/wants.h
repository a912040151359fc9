// What a decision asks of the caches of a device.
#pragma once

#include <vector>

#include "model/parameter_table.h"
#include "plan/loader/loader_types.h"

namespace hearth {

/// A block to load ahead of its use.
struct BlockWant {
  BlockId block = 0;  // its adapter comes with it
  Priority priority = Priority::layer;
  int32_t rank = 0;            // within the priority; the lowest first
  bool with_gradient = false;  // the accumulators too, for a backward
};

/// What shall be loaded ahead of its use, and what no longer shall.
struct Wants {
  std::vector<BlockWant> load;
  std::vector<BlockId> drop;  // of what is queued; what is coming comes
};

}  // namespace hearth
