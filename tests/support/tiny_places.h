// Placements of a model's blocks, for tests of schedules over several places.
#pragma once

#include "base/random.h"
#include "device/virtual_device.h"
#include "support/single_mode.h"
#include "support/tiny_model.h"

namespace hearth::test {

/// Puts every part of every layer at a random one of `places` places. Keeps routers with their
/// attention, experts of a layer together, a tied head with the embedding, adapters with their
/// bases.
inline void place_at_random(ParameterTable& table, Place places, uint64_t seed) {
  const Random random(seed, RandomSite::shuffle, 3);
  const bool tied = table.tensor(table.head_weight()).slot == Slot::embedding;
  for (BlockId id = 0; id < static_cast<BlockId>(table.blocks().size()); ++id) {
    const Block& own = table.block(id);
    const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
    BlockKind kind = block.kind == BlockKind::router ? BlockKind::attention : block.kind;
    if (tied && kind == BlockKind::head) kind = BlockKind::embedding;
    const auto part = static_cast<uint64_t>(block.layer + 1) * 16 + static_cast<uint64_t>(kind);
    table.set_place(id, static_cast<Place>(random.below(part, static_cast<uint64_t>(places))));
  }
}

/// Makes virtual devices, with links as fast as memory.
inline std::vector<std::shared_ptr<Device>> virtual_devices(int count) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    VirtualOptions options;
    options.name = "virtual:" + std::to_string(i);
    devices.push_back(make_virtual_device(options));
  }
  return devices;
}

}  // namespace hearth::test
