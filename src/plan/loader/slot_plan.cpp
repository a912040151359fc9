#include "plan/loader/slot_plan.h"

#include <algorithm>
#include <limits>
#include <map>

namespace hearth {

std::set<BlockId> blocks_away(const ParameterTable& table, const Task& task) {
  std::set<BlockId> blocks;
  for (const BlockUse& use : task.blocks) {
    if (use.access != BlockAccess::read_weights && use.access != BlockAccess::add_gradient) {
      continue;
    }
    for (BlockId b = use.begin; b < use.end; ++b) {
      const Block& block = table.block(b);
      if (block.kind != BlockKind::adapter && block.place != task.place) blocks.insert(b);
    }
  }
  return blocks;
}

bool adds_gradients(const Task& task) {
  return std::ranges::any_of(
      task.blocks, [](const BlockUse& use) { return use.access == BlockAccess::add_gradient; });
}

std::vector<BlockId> travelling_blocks(const ParameterTable& table,
                                       std::span<const Schedule* const> schedules, Place place) {
  std::set<BlockId> blocks;
  for (const Schedule* schedule : schedules) {
    for (const Task& task : schedule->tasks) {
      if (task.place != place) continue;
      blocks.merge(blocks_away(table, task));
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
      std::map<size_t, int32_t> of_task, of_expert;
      const bool gradients = adds_gradients(task);
      const std::set<BlockId> blocks = blocks_away(table, task);
      const auto count = [&](BlockId b, bool first) {
        for (const Cargo cargo : {Cargo::weights, Cargo::gradient}) {
          if (cargo == Cargo::gradient && !gradients) continue;
          const size_t bytes = slot_layout(table, b, cargo, policy).slot_bytes();
          if (bytes == 0) continue;
          ++of_task[bytes];
          if (first && task.kind == TaskKind::experts) ++of_expert[bytes];
          SlotSize& size = sizes[bytes];
          size.bytes = bytes;
          if (seen.emplace(b, cargo).second) ++size.cargoes;
        }
      };
      for (const BlockId b : blocks) {
        const bool first = b == *blocks.begin();
        count(b, first);
        if (const auto adapter = table.adapter_of(b)) count(*adapter, first);
      }
      for (const auto& [bytes, most] : of_task) {
        SlotSize& size = sizes[bytes];
        const auto own = of_expert.find(bytes);
        const int32_t each = own == of_expert.end() ? 0 : own->second;
        size.each = std::max(size.each, each);
        size.least = std::max(size.least, each > 0 ? std::min(most, 2 * each) : most);
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

int32_t wave_of(std::span<const SlotSize> sizes, std::span<const SlotClass> classes) {
  int32_t wave = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].each > 0) wave = std::min(wave, classes[i].slots / (2 * sizes[i].each));
  }
  return std::max(1, wave);
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
