// What a table of tensors takes of the heap, against what plans count.
#include "model/adapters.h"
#include "model_fixtures.h"
#include "support/counted_memory.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("table memory: a copy of a table takes what is counted for it") {
  for (const int experts : {8, 128}) {
    ParameterTable table;
    table.add_block(BlockKind::embedding);
    table.add_tensor("model.embed_tokens.weight", Slot::embedding, 8, 4, false);
    for (int e = 0; e < experts; ++e) {
      table.add_block(BlockKind::expert, 0, e);
      const std::string name = "model.layers.0.mlp.experts." + std::to_string(e);
      table.add_tensor(name + ".up_proj.weight", Slot::up, 4, 4, false);
      table.add_tensor(name + ".down_proj.weight", Slot::down, 4, 4, false);
    }
    for (BlockId base = 1; base <= experts; ++base) {
      table.add_adapter(base, 1);
      table.add_low_rank(table.block(base).begin, 2);
    }
    start_counting();
    const ParameterTable copy = table;
    const auto found = static_cast<double>(counted_peak());
    const auto counted = static_cast<double>(copy.memory_bytes());
    INFO(experts << " experts: " << found << " and " << counted);
    // Without the headers of the allocator; clang copies strings without room to spare.
    CHECK(found >= 0.92 * counted);
    CHECK(found <= 1.02 * counted);
  }
}
