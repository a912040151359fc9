#include "runtime/travelling_weights.h"

#include <algorithm>

namespace hearth {

TravellingWeights::TravellingWeights(Residency& residency, const ParameterTable& homes,
                                     const Schedule& schedule, Place place, const LoadRule& rule)
    : residency_(residency),
      schedule_(schedule),
      phases_(rule.phases),
      table_(homes),
      turns_(residency.items(), homes, schedule, place, rule) {
  for (BlockId b = 0; b < std::ssize(table_.blocks()); ++b) {
    if (residency_.travels(b)) hide(b);
  }
}

void TravellingWeights::begin_step() {
  if (!schedule_.rotates) return;
  for (const Task& task : schedule_.tasks) {
    if (task.kind == TaskKind::update) begin_change(task);
  }
}

void TravellingWeights::begin_loads() {
  asked_end_ = 0;
  if (turns_.turns().empty()) return;
  const TravelTurns::Ahead ahead = turns_.at_begin();
  asked_end_ = ahead.end;
  residency_.advance(0);
  if (!ahead.wants.load.empty()) residency_.apply(ahead.wants);
}

std::vector<Where> TravellingWeights::where_of(std::span<const BlockId> blocks) const {
  std::vector<Where> where;
  for (const BlockId block : blocks) where.push_back(residency_.where(block));
  return where;
}

void TravellingWeights::foresee(TaskId task, std::span<const BlockId> experts) {
  const std::vector<BlockId>& candidates = turns_.decided(task)->candidates;
  const std::lock_guard lock(foreseeing_);
  Foreseen& of = foreseen_.emplace_back();
  of.task = task;
  of.experts.assign(experts.begin(), experts.end());
  of.came.assign(candidates.size(), Came::not_here);
  const std::vector<Where> where = where_of(candidates);
  size_t there_before = 0;
  for (const BlockId block : experts) {
    const auto e = static_cast<size_t>(block - candidates.front());
    of.came[e] = where[e] != Where::home ? Came::before : Came::late;
    if (of.came[e] == Came::before && of.there == there_before) ++of.there;
    ++there_before;
  }
  if (!phases_.inter_expert) return;
  residency_.apply(turns_.wants_of_split(task, experts, where, Priority::expert));
}

void TravellingWeights::foretell(TaskId task, std::span<const BlockId> experts) {
  const std::lock_guard lock(foreseeing_);
  foreseen_.push_back({task, {experts.begin(), experts.end()}, {}});
  const std::vector<Where> where = where_of(turns_.decided(task)->candidates);
  residency_.apply(turns_.wants_of_split(task, experts, where, Priority::layer));
}

void TravellingWeights::take_foreseen() {
  for (Foreseen& of : foreseen_) {
    set_turns(of.task, of.experts, of.there);
    if (of.came.empty()) continue;
    there_[of.task] = of.there;
    came_before_[of.task] = std::move(of.came);
    seen_.insert(of.task);
  }
  foreseen_.clear();
}

void TravellingWeights::choose(TaskId task, std::span<const BlockId> experts) {
  {
    const std::lock_guard lock(foreseeing_);
    take_foreseen();
  }
  const auto foreseen = there_.find(task);
  set_turns(task, experts, foreseen == there_.end() ? 0 : foreseen->second);
}

void TravellingWeights::set_turns(TaskId task, std::span<const BlockId> experts, size_t there) {
  chosen_turns_[task] = turns_.choose(task, experts, there);
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
  const TravelTurns::Range* const turns = turns_.of_task(task);
  if (is_decided(task)) return chosen_turns_.at(task);
  return turns == nullptr ? 1 : static_cast<int32_t>(turns->count);
}

std::span<const TravellingWeights::Came> TravellingWeights::came_before(TaskId task) const {
  const auto found = came_before_.find(task);
  if (found == came_before_.end()) return {};
  return found->second;
}

void TravellingWeights::see_what_came(const TravelTurns::Range& turns) {
  const TaskId task = turns_.turns()[turns.first].task;
  std::vector<Came>& came = came_before_[task];
  came.clear();
  const DecidedTurns* const decided = turns_.decided(task);
  if (decided != nullptr) came.assign(decided->candidates.size(), Came::not_here);
  for (size_t turn = 0; turn < turns.count; ++turn) {
    for (const BlockId block : turns_.turns()[turns.first + turn].blocks) {
      const Came now = residency_.where(block) != Where::home ? Came::before : Came::late;
      if (decided == nullptr) {
        came.push_back(now);
      } else {
        came[static_cast<size_t>(block - decided->candidates.front())] = now;
      }
    }
  }
}

ExpertWave TravellingWeights::begin(TaskId task, int32_t turn, Stream& stream) {
  const TravelTurns::Range* const range = turns_.of_task(task);
  if (range == nullptr) return {};
  const size_t position = range->first + static_cast<size_t>(turn);
  const TravelTurn& need = turns_.turns()[position];
  const bool experts =
      is_decided(task) || table_.block(need.blocks.front()).kind == BlockKind::expert;
  if (turn == 0 && experts && seen_.erase(task) == 0) see_what_came(*range);
  position_ = position;
  if (need.blocks.empty()) return {};  // a split gave the device no expert
  residency_.advance(static_cast<Position>(position));
  for (size_t i = 0; i < need.blocks.size(); ++i) {
    residency_.expect(need.blocks[i], need.next_use[i]);
  }
  const bool expected = position > 0 && position < asked_end_;
  lease_.push_back(residency_.lease(need.blocks, need.with_gradient, expected));
  {
    const std::lock_guard lock(foreseeing_);
    take_foreseen();
    const TravelTurns::Ahead ahead = turns_.ahead(position);
    asked_end_ = std::max(asked_end_, ahead.end);
    if (!ahead.wants.load.empty()) residency_.apply(ahead.wants);
  }
  residency_.wait(lease_.back(), stream);
  for (const LeasedBlock& leased : lease_.back().blocks) show(leased, need.with_gradient);
  return need.wave;
}

void TravellingWeights::end(Stream& stream) {
  if (lease_.empty()) return;
  for (const LeasedBlock& leased : lease_.back().blocks) hide(leased.block);
  residency_.release(lease_.back(), stream);
  lease_.clear();
  for (const BlockId block : turns_.turns()[position_].last) {
    residency_.bring_home(block, block + 1);
    if (const auto adapter = table_.adapter_of(block)) {
      residency_.bring_home(*adapter, *adapter + 1);
    }
  }
}

void TravellingWeights::bring_home(std::span<const BlockUse> blocks) {
  std::vector<std::shared_ptr<Event>> home;
  for (const BlockUse& use : blocks) home.push_back(residency_.bring_home(use.begin, use.end));
  for (const auto& event : home) event->synchronize();
}

void TravellingWeights::begin_adding(std::span<const BlockId> experts) {
  std::shared_ptr<Event> home;
  const auto bring = [&](BlockId block) { home = residency_.bring_home(block, block + 1); };
  for (const BlockId block : experts) {
    bring(block);
    home->synchronize();
    if (const auto adapter = table_.adapter_of(block)) {
      bring(*adapter);
      home->synchronize();
    }
  }
  for (const BlockId block : experts) {
    residency_.begin_change(block, block + 1, HomeChange::accumulated);
    if (const auto adapter = table_.adapter_of(block)) {
      residency_.begin_change(*adapter, *adapter + 1, HomeChange::accumulated);
    }
  }
}

void TravellingWeights::added(std::span<const BlockId> experts) {
  for (const BlockId block : experts) {
    residency_.changed(block, block + 1, HomeChange::accumulated);
    if (const auto adapter = table_.adapter_of(block)) {
      residency_.changed(*adapter, *adapter + 1, HomeChange::accumulated);
    }
  }
}

void TravellingWeights::begin_update(const Task& update) {
  if (!schedule_.rotates) begin_change(update);
}
void TravellingWeights::begin_change(const Task& update) {
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
