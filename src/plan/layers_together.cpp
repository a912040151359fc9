#include "plan/layers_together.h"

#include <algorithm>

namespace hearth {

namespace {

constexpr int64_t kLeastBytes = 256
                                << 10;  // of a rank's share: at 1 GB/s five times a usual latency

/// What the trained blocks of a layer, or of several, have of gradients that travel.
struct Gradients {
  int64_t bytes = 0, largest = 0;  // of all, of a block
  void add(const Gradients& other) {
    bytes += other.bytes;
    largest = std::max(largest, other.largest);
  }
};

/// From the embedding to the head.
std::vector<Gradients> gradients_of_layers(const ModelSpec& spec, const ParameterTable& table,
                                           const RankShards& shards) {
  std::vector<Gradients> layers(static_cast<size_t>(spec.layers) + 2);
  // An expert that one rank alone computes is where its gradient is.
  const bool experts_stay = shards.group().divided() && shards.groups() == 1;
  for (BlockId id = 0; id < std::ssize(table.blocks()); ++id) {
    const Block& block = table.block(id);
    const Block& of = block.kind == BlockKind::adapter ? table.block(block.base) : block;
    if (experts_stay && of.kind == BlockKind::expert) continue;
    int64_t elements = 0;
    for (TensorId t = block.begin; t < block.end; ++t) {
      if (table.tensor(t).trainable) elements += table.tensor(t).size();
    }
    const int64_t bytes = 4 * elements;
    const int64_t layer = of.kind == BlockKind::head ? spec.layers : of.layer;
    layers[static_cast<size_t>(layer + 1)].add({bytes, bytes});
  }
  return layers;
}

}  // namespace

std::vector<LayersTogether> layers_together(const ModelSpec& spec, const ParameterTable& table,
                                            const RankShards& shards) {
  std::vector<LayersTogether> together;
  if (shards.ranks == 1) return together;
  const std::vector<Gradients> layers = gradients_of_layers(spec, table, shards);
  const auto most = static_cast<int32_t>((layers.size() + 1) / 2);
  const int64_t ranks = shards.computing();
  Gradients sum;
  int32_t count = 0;
  for (auto layer = static_cast<int32_t>(spec.layers); layer >= -1; --layer) {
    sum.add(layers[static_cast<size_t>(layer + 1)]);
    ++count;
    const bool is_even = sum.bytes >= ranks * std::max(sum.largest, kLeastBytes);
    if (!is_even && count < most && layer > -1) continue;
    together.push_back({layer, count});
    sum = {};
    count = 0;
  }
  return together;
}

}  // namespace hearth
