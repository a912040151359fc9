// How many slots of which sizes a device has for blocks that live on the host.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "plan/loader/loader_types.h"
#include "plan/loader/slot_layout.h"
#include "plan/schedule.h"

namespace hearth {

/// The blocks that a task computes with although they live elsewhere; adapters, which travel with their
/// bases, are not among them.
std::set<BlockId> blocks_away(const ParameterTable& table, const Task& task);
/// Whether the task adds to gradients.
bool adds_gradients(const Task& task);

/// The cargoes of a device's travelling blocks, by size.
struct SlotSize {
  size_t bytes = 0;
  int32_t cargoes = 0;  // of this size
  int32_t least = 0;    // that one task, or two waves of one expert, need at the same time
  int32_t each = 0;     // of an expert, with its accumulators and adapter
  friend bool operator==(const SlotSize&, const SlotSize&) = default;
};

/// Of the blocks that tasks at the place read although they live elsewhere, adapters among them.
/// Ascending by size.
std::vector<SlotSize> slot_sizes(const ParameterTable& table, const CopyPolicy& policy,
                                 std::span<const Schedule* const> schedules, Place place);

/// The bytes of the slots with which every task can run, one after the other.
uint64_t least_slot_bytes(std::span<const SlotSize> sizes);
/// Of slots for everything: each block is loaded once.
uint64_t most_slot_bytes(std::span<const SlotSize> sizes);

/// Slots of at most so many bytes, at least `least_slot_bytes`. What is left above the least goes to
/// the sizes in turn, so that each has about the same share of its cargoes in slots.
std::vector<SlotClass> slot_classes(std::span<const SlotSize> sizes, uint64_t bytes);

/// Experts that a task computes at one time (LoadRule::wave): so many that a second wave can be loaded
/// beside them.
int32_t wave_of(std::span<const SlotSize> sizes, std::span<const SlotClass> classes);

/// The blocks that travel to the place; no adapters (SlotPlan::blocks).
std::vector<BlockId> travelling_blocks(const ParameterTable& table,
                                       std::span<const Schedule* const> schedules, Place place);

}  // namespace hearth
