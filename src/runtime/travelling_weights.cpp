#include "runtime/travelling_weights.h"

#include <algorithm>
#include <set>

#include "runtime/slot_plan.h"

namespace hearth {

TravellingWeights::TravellingWeights(Residency& residency, const ParameterTable& homes,
                                     const Schedule& schedule, Place place, const LoadRule& rule)
    : residency_(residency), table_(homes), ahead_bytes_(rule.ahead_bytes) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.place == place) add_needs(static_cast<TaskId>(t), task, rule.wave);
  }
  for (BlockId b = 0; b < std::ssize(table_.blocks()); ++b) {
    if (residency_.travels(b)) hide(b);
  }
  find_next_uses();
}

void TravellingWeights::add_needs(TaskId id, const Task& task, int32_t wave) {
  const std::set<BlockId> away = blocks_away(table_, task);
  if (away.empty()) return;
  const std::vector<BlockId> all(away.begin(), away.end());
  const auto count = static_cast<int32_t>(all.size());
  const bool in_waves = task.kind == TaskKind::experts && wave > 0 && wave < count;
  HEARTH_CHECK(!in_waves || task.part.all(), "travelling: waves of a part of a layer");
  const int32_t each = in_waves ? wave : count;
  Turns& turns = of_task_[id];
  turns = {needs_.size(), static_cast<size_t>((count + each - 1) / each), {}};
  if (task.kind == TaskKind::experts) turns.came_before.resize(all.size());
  for (int32_t begin = 0; begin < count; begin += each) {
    const int32_t end = std::min(count, begin + each);
    Need need;
    need.with_gradient = adds_gradients(task);
    need.blocks.assign(all.begin() + begin, all.begin() + end);
    if (in_waves) need.wave = {begin, end};
    need.bytes = bytes_of(need);
    needs_.push_back(std::move(need));
  }
}

uint64_t TravellingWeights::bytes_of(const Need& need) const {
  uint64_t sum = 0;
  const auto add = [&](BlockId block) {
    sum += residency_.weights(block).slot_bytes();
    if (need.with_gradient) sum += residency_.gradient(block).slot_bytes();
  };
  for (const BlockId block : need.blocks) {
    add(block);
    if (const auto adapter = table_.adapter_of(block)) add(*adapter);
  }
  return sum;
}

void TravellingWeights::find_next_uses() {
  std::map<BlockId, Position> next;
  std::set<BlockId> added;  // to whose gradients a later turn adds
  for (size_t i = needs_.size(); i-- > 0;) {
    for (const BlockId block : needs_[i].blocks) {
      if (needs_[i].with_gradient && added.insert(block).second) needs_[i].last.push_back(block);
      const auto found = next.find(block);
      needs_[i].next_use.push_back(found == next.end() ? kNever : found->second);
      next[block] = static_cast<Position>(i);
    }
  }
}

void TravellingWeights::ask_ahead(size_t position) {
  Wants wants;
  uint64_t bytes = 0;
  for (size_t i = position + 1; i < needs_.size(); ++i) {
    bytes += needs_[i].bytes;
    if (bytes > ahead_bytes_) break;
    asked_ = std::max(asked_, i);
    for (const BlockId block : needs_[i].blocks) {
      wants.load.push_back(
          {block, Priority::stage, static_cast<int32_t>(i - position), needs_[i].with_gradient});
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

int32_t TravellingWeights::turns(TaskId task) const {
  const auto found = of_task_.find(task);
  return found == of_task_.end() ? 1 : static_cast<int32_t>(found->second.count);
}

std::span<const uint8_t> TravellingWeights::came_before(TaskId task) const {
  const auto found = of_task_.find(task);
  if (found == of_task_.end()) return {};
  return found->second.came_before;
}

void TravellingWeights::see_what_came(Turns& turns) const {
  if (turns.came_before.empty()) return;
  size_t expert = 0;
  for (size_t turn = 0; turn < turns.count; ++turn) {
    for (const BlockId block : needs_[turns.first + turn].blocks) {
      turns.came_before[expert++] = residency_.where(block) != Where::home ? 1 : 0;
    }
  }
}

ExpertWave TravellingWeights::begin(TaskId task, int32_t turn, Stream& stream) {
  const auto found = of_task_.find(task);
  if (found == of_task_.end()) return {};
  const size_t position = found->second.first + static_cast<size_t>(turn);
  const Need& need = needs_[position];
  if (turn == 0) see_what_came(found->second);
  if (position == 0) asked_ = 0;
  position_ = position;
  residency_.advance(static_cast<Position>(position));
  for (size_t i = 0; i < need.blocks.size(); ++i) {
    residency_.expect(need.blocks[i], need.next_use[i]);
  }
  const bool expected = position > 0 && position <= asked_;
  lease_.push_back(residency_.lease(need.blocks, need.with_gradient, expected));
  ask_ahead(position);
  residency_.wait(lease_.back(), stream);
  for (const LeasedBlock& leased : lease_.back().blocks) show(leased, need.with_gradient);
  return need.wave;
}

void TravellingWeights::end(Stream& stream) {
  if (lease_.empty()) return;
  for (const LeasedBlock& leased : lease_.back().blocks) hide(leased.block);
  residency_.release(lease_.back(), stream);
  lease_.clear();
  for (const BlockId block : needs_[position_].last) {
    residency_.bring_home(block, block + 1);
    if (const auto adapter = table_.adapter_of(block)) {
      residency_.bring_home(*adapter, *adapter + 1);
    }
  }
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
