// Which neighbouring layers have their gradients summed, and their weights given, at one time.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/shard_tree.h"
#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

/// Layers [first, first + count); -1 is the embedding, the number of layers the head.
struct LayersTogether {
  int32_t first = 0, count = 1;
};

/// All layers, from the head down. Each block has one owner. So while the few blocks of a single layer
/// travel, the links of most ranks may be idle. Layers travel together until no block is larger than a
/// rank's share of all that travels, and until that share is worth a message; but never more than half
/// of all layers, so that others can travel while backward computes. Empty for one rank.
std::vector<LayersTogether> layers_together(const ModelSpec& spec, const ParameterTable& table,
                                            const RankShards& shards);

}  // namespace hearth
