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

/// A run's places, and where the blocks of a model are.
struct PartsCase {
  int32_t hosts = 1;
  int32_t devices = 2;
  uint64_t seed = 1;
  int32_t places() const { return hosts + devices; }
};

/// Puts the dense parts of each layer at a random place, and each expert at a random one of one to three
/// places of its layer. A tied head is with the embedding, adapters are with their bases.
inline void place_in_parts(ParameterTable& table, const PartsCase& of) {
  const Random random(of.seed, RandomSite::shuffle, 5);
  const bool tied = table.tensor(table.head_weight()).slot == Slot::embedding;
  int64_t layers = 0;
  for (const Block& block : table.blocks()) {
    layers = std::max<int64_t>(layers, block.layer + 1);
  }
  const auto places = static_cast<uint64_t>(of.places());
  const auto dense = [&](int64_t layer) {
    return static_cast<Place>(random.below(static_cast<uint64_t>(layer + 1), places));
  };
  const auto expert = [&](int64_t layer, int64_t number) {
    const auto draw = 1000 * static_cast<uint64_t>(layer + 1);
    const uint64_t parts = std::min<uint64_t>(1 + random.below(draw, 3), places);
    const uint64_t first = random.below(draw + 1, places);
    const uint64_t part = random.below(draw + 2 + static_cast<uint64_t>(number), parts);
    return static_cast<Place>((first + part) % places);
  };
  for (BlockId id = 0; id < static_cast<BlockId>(table.blocks().size()); ++id) {
    const Block& own = table.block(id);
    const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
    switch (block.kind) {
      case BlockKind::expert: table.set_place(id, expert(block.layer, block.expert)); break;
      case BlockKind::embedding: table.set_place(id, dense(tied ? layers : -1)); break;
      case BlockKind::head: table.set_place(id, dense(layers)); break;
      default: table.set_place(id, dense(block.layer));
    }
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

/// The places of a case; `host_lanes`: one stream of the host for each device.
inline TinyPlaces places_of(const PartsCase& of, bool host_lanes) {
  TinyPlaces places;
  for (int32_t node = 1; node < of.hosts; ++node) {
    places.devices.push_back(make_host_device(uint64_t{1} << 40, "host:" + std::to_string(node)));
  }
  for (auto& device : virtual_devices(of.devices)) places.devices.push_back(std::move(device));
  places.place_blocks = [of](ParameterTable& table) { place_in_parts(table, of); };
  places.hosts = of.hosts;
  places.host_lanes = host_lanes ? of.devices : 1;
  return places;
}

}  // namespace hearth::test
