// Which layers exchange gradients at one time. Sizes are of made-up tables, so that each is as large as
// the case wants.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "plan/layers_together.h"

namespace hearth::test {
namespace {

struct MadeUp {
  ModelSpec spec;
  ParameterTable table;

  MadeUp(int64_t layers, int64_t experts, int64_t dense, int64_t expert, int64_t outside) {
    spec.layers = layers;
    spec.experts = experts;
    add(BlockKind::embedding, -1, -1, outside);
    for (int32_t layer = 0; layer < layers; ++layer) {
      add(BlockKind::attention, layer, -1, dense);
      for (int32_t e = 0; e < experts; ++e) add(BlockKind::expert, layer, e, expert);
    }
    add(BlockKind::head, -1, -1, outside);
  }

  std::vector<LayersTogether> together(const RankShards& shards) const {
    const std::vector<LayersTogether> found = layers_together(spec, table, shards);
    int32_t next = static_cast<int32_t>(spec.layers) + 1;  // downwards, each layer once
    for (const LayersTogether& layers : found) {
      CHECK(layers.count >= 1);
      CHECK(layers.first + layers.count == next);
      next = layers.first;
    }
    CHECK(next == -1);
    return found;
  }

 private:
  void add(BlockKind kind, int32_t layer, int32_t expert, int64_t elements) {
    table.add_block(kind, layer, expert);
    const std::string name = "t" + std::to_string(table.tensors().size());
    Tensor& t = table.tensor(table.add_tensor(name, Slot::o, 1, elements, false));
    t.trainable = elements > 0;
  }
};

constexpr int64_t kMega = 1 << 20;

}  // namespace

TEST_CASE("layers together: one where its blocks are many\\, several where they are few") {
  const MadeUp model(16, 8, kMega, kMega, 0);
  // dp on two and four ranks: nine blocks of a layer, as large as each other.
  for (const int32_t ranks : {2, 4}) {
    const auto found = model.together({.shards = ranks, .ranks = ranks});
    CHECK(found[0].count == 2);  // the head has nothing
    for (size_t i = 1; i + 1 < found.size(); ++i) CHECK(found[i].count == 1);
  }
  // With ep, one block of a layer travels: as many layers as ranks, but half of all at most.
  for (const auto& [ranks, count] : {std::pair{2, 2}, {4, 4}, {16, 9}}) {
    RankShards shards{.shards = ranks, .ranks = ranks};
    shards.expert_ranks = ranks;
    const auto found = model.together(shards);
    CHECK(found[1].count == count);
  }
}

TEST_CASE("layers together: small gradients are one message\\, and one rank sends none") {
  const MadeUp small(12, 4, 64, 64, 64);
  const auto found = small.together({.shards = 2, .ranks = 2});
  CHECK(found.size() == 2);
  CHECK(found[0].count == 7);
  CHECK(layers_together(small.spec, small.table, {.shards = 2}).empty());
}

}  // namespace hearth::test
