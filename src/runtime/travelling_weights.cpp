#include "runtime/travelling_weights.h"

#include <algorithm>
#include <set>

namespace hearth {

TravellingWeights::TravellingWeights(Residency& residency, const ParameterTable& homes,
                                     const Schedule& schedule, Place place, LoadAhead ahead)
    : residency_(residency), table_(homes), ahead_(ahead) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.place != place || task.kind == TaskKind::copy) continue;
    Need need = need_of(task);
    if (need.blocks.empty()) continue;
    position_of_[static_cast<TaskId>(t)] = needs_.size();
    needs_.push_back(std::move(need));
  }
  for (BlockId b = 0; b < std::ssize(table_.blocks()); ++b) {
    if (residency_.travels(b)) hide(b);
  }
  std::map<BlockId, Position> next;
  for (size_t i = needs_.size(); i-- > 0;) {
    for (const BlockId block : needs_[i].blocks) {
      const auto found = next.find(block);
      needs_[i].next_use.push_back(found == next.end() ? kNever : found->second);
      next[block] = static_cast<Position>(i);
    }
  }
}

TravellingWeights::Need TravellingWeights::need_of(const Task& task) const {
  Need need;
  std::set<BlockId> blocks;
  for (const BlockUse& use : task.blocks) {
    if (use.access != BlockAccess::read_weights && use.access != BlockAccess::add_gradient) continue;
    need.with_gradient |= use.access == BlockAccess::add_gradient;
    for (BlockId b = use.begin; b < use.end; ++b) {
      // An adapter travels with its base.
      if (table_.block(b).kind == BlockKind::adapter || !residency_.travels(b)) continue;
      blocks.insert(b);
    }
  }
  need.blocks.assign(blocks.begin(), blocks.end());
  for (const BlockId b : need.blocks) {
    const auto bytes = [&](BlockId block) {
      return residency_.weights(block).slot_bytes() +
             (need.with_gradient ? residency_.gradient(block).slot_bytes() : 0);
    };
    need.bytes += bytes(b);
    if (const auto adapter = table_.adapter_of(b)) need.bytes += bytes(*adapter);
  }
  return need;
}

void TravellingWeights::ask_ahead(size_t position) {
  Wants wants;
  uint64_t bytes = 0;
  for (size_t i = position + 1; i < needs_.size(); ++i) {
    bytes += needs_[i].bytes;
    if (bytes > ahead_.bytes) break;
    for (const BlockId block : needs_[i].blocks) {
      wants.load.push_back({block, Priority::stage, static_cast<int32_t>(i - position),
                            needs_[i].with_gradient});
    }
  }
  if (!wants.load.empty()) residency_.apply(wants);
}

/// So that nobody reads homes, or a slot that was given up.
void TravellingWeights::hide(BlockId block) {
  for (TensorId id = table_.block(block).begin; id < table_.block(block).end; ++id) {
    for (Copy& copy : table_.tensor(id).copies) copy = {};
  }
}

/// Points the table's tensors of a block to its slots.
void TravellingWeights::show(const LeasedBlock& leased, bool with_gradient) {
  const auto point = [&](const SlotLayout& layout, const std::byte* slot, bool gradient) {
    for (const SlotTensor& of : layout.tensors) {
      Tensor& tensor = table_.tensor(of.id);
      auto* const data = const_cast<std::byte*>(slot) + of.offset;
      // Of the roles that forward and backward read, the first is enough.
      const CopyRole role = gradient ? CopyRole::gradient : CopyRole::working;
      tensor.copies[static_cast<size_t>(role)] = {View(data, of.type, tensor.rows, tensor.cols),
                                                  tensor.version};
    }
  };
  if (leased.weights != nullptr) point(residency_.weights(leased.block), leased.weights, false);
  if (with_gradient && leased.gradient != nullptr) {
    point(residency_.gradient(leased.block), leased.gradient, true);
  }
}

ParameterTable& TravellingWeights::begin(TaskId task, Stream& stream) {
  const auto found = position_of_.find(task);
  if (found == position_of_.end()) return table_;
  const Need& need = needs_[found->second];
  residency_.advance(static_cast<Position>(found->second));
  for (size_t i = 0; i < need.blocks.size(); ++i) {
    residency_.expect(need.blocks[i], need.next_use[i]);
  }
  lease_.push_back(residency_.lease(need.blocks, need.with_gradient));
  ask_ahead(found->second);
  residency_.wait(lease_.back(), stream);
  for (const LeasedBlock& leased : lease_.back().blocks) show(leased, need.with_gradient);
  return table_;
}

void TravellingWeights::end(Stream& stream) {
  if (lease_.empty()) return;
  for (const LeasedBlock& leased : lease_.back().blocks) hide(leased.block);
  residency_.release(lease_.back(), stream);
  lease_.clear();
}

void TravellingWeights::bring_home() {
  residency_.bring_home(0, static_cast<BlockId>(table_.blocks().size()))->synchronize();
}

void TravellingWeights::begin_update(const Task& update) {
  for (const BlockUse& use : update.blocks) {
    residency_.begin_change(use.begin, use.end, HomeChange::updated);
  }
}
void TravellingWeights::updated(const Task& update) {
  for (const BlockUse& use : update.blocks) {
    residency_.changed(use.begin, use.end, HomeChange::updated);
  }
}

}  // namespace hearth
