#include "runtime/slot_plan.h"

#include <algorithm>
#include <map>
#include <set>

namespace hearth {

namespace {

/// The blocks that a task computes with although they live elsewhere, adapters among them.
std::set<BlockId> travelling_of(const ParameterTable& table, const Task& task) {
  std::set<BlockId> blocks;
  for (const BlockUse& use : task.blocks) {
    if (use.access != BlockAccess::read_weights && use.access != BlockAccess::add_gradient) continue;
    for (BlockId b = use.begin; b < use.end; ++b) {
      if (table.block(b).place == task.place) continue;
      blocks.insert(b);
      if (const auto adapter = table.adapter_of(b)) blocks.insert(*adapter);
    }
  }
  return blocks;
}

bool adds_gradients(const Task& task) {
  return std::ranges::any_of(task.blocks, [](const BlockUse& use) {
    return use.access == BlockAccess::add_gradient;
  });
}

}  // namespace

std::vector<BlockId> travelling_blocks(const ParameterTable& table,
                                       std::span<const Schedule* const> schedules, Place place) {
  std::set<BlockId> blocks;
  for (const Schedule* schedule : schedules) {
    for (const Task& task : schedule->tasks) {
      if (task.place != place) continue;
      for (const BlockId b : travelling_of(table, task)) {
        if (table.block(b).kind != BlockKind::adapter) blocks.insert(b);
      }
    }
  }
  return {blocks.begin(), blocks.end()};
}

std::vector<SlotSize> slot_sizes(const ParameterTable& table, const CopyPolicy& policy,
                                 std::span<const Schedule* const> schedules, Place place) {
  std::map<size_t, SlotSize> sizes;
  std::set<std::pair<BlockId, Cargo>> seen;
  for (const Schedule* schedule : schedules) {
    for (const Task& task : schedule->tasks) {
      if (task.place != place) continue;
      std::map<size_t, int32_t> of_task;
      const bool gradients = adds_gradients(task);
      for (const BlockId b : travelling_of(table, task)) {
        for (const Cargo cargo : {Cargo::weights, Cargo::gradient}) {
          if (cargo == Cargo::gradient && !gradients) continue;
          const size_t bytes = slot_layout(table, b, cargo, policy).slot_bytes();
          if (bytes == 0) continue;
          ++of_task[bytes];
          SlotSize& size = sizes[bytes];
          size.bytes = bytes;
          if (seen.emplace(b, cargo).second) ++size.cargoes;
        }
      }
      for (const auto& [bytes, count] : of_task) {
        sizes[bytes].least = std::max(sizes[bytes].least, count);
      }
    }
  }
  std::vector<SlotSize> list;
  for (const auto& [bytes, size] : sizes) list.push_back(size);
  return list;
}

uint64_t least_slot_bytes(std::span<const SlotSize> sizes) {
  uint64_t bytes = 0;
  for (const SlotSize& size : sizes) bytes += size.bytes * static_cast<uint64_t>(size.least);
  return bytes;
}

uint64_t most_slot_bytes(std::span<const SlotSize> sizes) {
  uint64_t bytes = 0;
  for (const SlotSize& size : sizes) bytes += size.bytes * static_cast<uint64_t>(size.cargoes);
  return bytes;
}

std::vector<SlotClass> slot_classes(std::span<const SlotSize> sizes, uint64_t bytes) {
  std::vector<SlotClass> classes;
  for (const SlotSize& size : sizes) classes.push_back({size.bytes, size.least, size.least});
  const uint64_t least = least_slot_bytes(sizes);
  HEARTH_CHECK(bytes >= least, "slots: less memory than the largest task needs");
  uint64_t left = bytes - least;
  // The size of which the smallest share has a slot is next; what does not fit is left out.
  while (true) {
    size_t next = classes.size();
    for (size_t i = 0; i < classes.size(); ++i) {
      if (classes[i].slots == sizes[i].cargoes || classes[i].bytes > left) continue;
      const auto share = [&](size_t at) {
        return static_cast<double>(classes[at].slots) / static_cast<double>(sizes[at].cargoes);
      };
      if (next == classes.size() || share(i) < share(next)) next = i;
    }
    if (next == classes.size()) return classes;
    ++classes[next].slots;
    left -= classes[next].bytes;
  }
}

}  // namespace hearth
