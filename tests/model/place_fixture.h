// Tables whose experts, or all blocks, live where the host does not reach.
#pragma once

#include <memory>
#include <vector>

#include "model/parameter_memory.h"
#include "model_fixtures.h"
#include "support/guarded_memory.h"

namespace hearth::test {

enum class Away { nothing, experts, odd_experts, everything };

inline void move_blocks(ParameterTable& table, Away away) {
  for (BlockId id = 0; id < std::ssize(table.blocks()); ++id) {
    const Block& block = table.block(id);
    const Block& base = block.kind == BlockKind::adapter ? table.block(block.base) : block;
    const bool is_expert = base.kind == BlockKind::expert;
    const bool is_away = away == Away::everything || (away == Away::experts && is_expert) ||
                         (away == Away::odd_experts && is_expert && base.expert % 2 == 1);
    table.set_place(id, is_away ? 1 : kHostPlace);
  }
}

/// A table bound to memory of its own, by place.
struct PlacedTable {
  ParameterTable table;
  std::unique_ptr<GuardedMemory> memory = std::make_unique<GuardedMemory>();
  std::vector<std::vector<std::byte>> arenas;

  PlacedTable(ParameterTable of, const CopyPolicy& policy, Away away) : table(std::move(of)) {
    move_blocks(table, away);
    table.set_memory(*memory);
    std::vector<PlaceArenas> at(2, PlaceArenas{});
    for (const ParameterArena& arena : parameter_arenas(table, policy)) {
      std::byte*& data = at[static_cast<size_t>(arena.place)][static_cast<size_t>(arena.role)];
      if (arena.place == kHostPlace) {
        data = arenas.emplace_back(arena.bytes).data();
      } else {
        data = memory->reserve(arena.bytes);
      }
    }
    bind_parameters(table, policy, at);
  }

  /// Writes one number per byte to all copies, another one in each.
  void fill() {
    int number = 0;
    for (const Tensor& t : table.tensors()) {
      for (const Copy& copy : t.copies) {
        if (!copy.present()) continue;
        const std::vector<std::byte> bytes(copy.view.bytes(), std::byte(++number));
        memory->write(table.block(t.block).place, static_cast<std::byte*>(copy.view.raw()), bytes);
      }
    }
  }

  /// All bytes of the copies of a role, in the order of the table.
  std::vector<std::byte> bytes(CopyRole role) const {
    std::vector<std::byte> all, staging;
    for (const Tensor& t : table.tensors()) {
      const Copy& copy = t.copies[static_cast<int>(role)];
      if (!copy.present()) continue;
      const auto here =
          host_bytes(*memory, table.block(t.block).place,
                     {static_cast<const std::byte*>(copy.view.data), copy.view.bytes()}, staging);
      all.insert(all.end(), here.begin(), here.end());
    }
    return all;
  }
};

inline ParameterTable trained(ParameterTable table) {
  for (Tensor& t : table.tensors()) t.trainable = true;
  return table;
}

inline constexpr CopyPolicy kTraining{true, Compute::f32, DType::f32};
inline constexpr CopyPolicy kRounded{true, Compute::bf16, DType::f32};

}  // namespace hearth::test
