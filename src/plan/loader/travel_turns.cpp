#include "plan/loader/travel_turns.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "plan/decisions/load_wants.h"
#include "plan/loader/slot_plan.h"

namespace hearth {

TravelTurns::TravelTurns(const TravelItems& items, const ParameterTable& table,
                         const Schedule& schedule, Place place, const LoadRule& rule)
    : items_(items),
      blocks_(table.blocks().size()),
      ahead_bytes_(rule.ahead_bytes),
      inter_stage_(rule.phases.inter_stage) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.place != place) continue;
    if (schedule.is_decided(task)) {
      const std::set<BlockId> away = blocks_away(table, task);
      add_decided(static_cast<TaskId>(t), schedule, {away.begin(), away.end()}, rule.wave);
    } else {
      add(static_cast<TaskId>(t), task, table, rule.wave);
    }
  }
  find_stages(schedule, rule);
  find_next_uses();
  find_same_experts(schedule);
}

void TravelTurns::find_same_experts(const Schedule& schedule) {
  const auto task_of = [&](TaskId id) -> const Task& {
    return schedule.tasks[static_cast<size_t>(id)];
  };
  for (auto it = decided_.begin(); it != decided_.end(); ++it) {
    const Task& task = task_of(it->first);
    if (task.phase == Phase::backward) continue;
    for (auto later = std::next(it); later != decided_.end(); ++later) {
      const Task& other = task_of(later->first);
      if (other.layer == task.layer && other.rows == task.rows) {
        same_experts_[it->first].push_back(later->first);
      }
    }
  }
}

void TravelTurns::find_stages(const Schedule& schedule, const LoadRule& rule) {
  if (rule.stages.empty()) return;
  const auto last = static_cast<int32_t>(rule.stages.size()) - 1;
  for (TravelTurn& turn : turns_) {
    const Task& task = schedule.tasks[static_cast<size_t>(turn.task)];
    const int32_t stage = rule.stages[static_cast<size_t>(std::clamp(task.layer, 0, last))];
    turn.stage = 2 * stage + (task.phase == Phase::forward ? 0 : 1);
  }
}

void TravelTurns::add_decided(TaskId id, const Schedule& schedule, std::vector<BlockId> candidates,
                              int32_t wave) {
  const Task& task = schedule.tasks[static_cast<size_t>(id)];
  const auto count = static_cast<int32_t>(candidates.size());
  const int32_t each = wave > 0 ? std::min(wave, count) : count;
  const Range range{turns_.size(), static_cast<size_t>((count + each - 1) / each) + 1};
  of_task_[id] = range;
  for (size_t i = 0; i < range.count; ++i) {
    TravelTurn turn;
    turn.task = id;
    turn.with_gradient = adds_gradients(task);
    turns_.push_back(std::move(turn));
  }
  DecidedTurns& of = decided_[id];
  of.wave = each;
  for (const BlockId block : candidates) {
    if (schedule.expected[static_cast<size_t>(block)] == task.place) of.expected.push_back(block);
  }
  of.candidates = std::move(candidates);
}

const DecidedTurns* TravelTurns::decided(TaskId task) const {
  const auto found = decided_.find(task);
  return found == decided_.end() ? nullptr : &found->second;
}

int32_t TravelTurns::choose(TaskId task, std::span<const BlockId> experts, size_t there) {
  const auto later = same_experts_.find(task);
  if (later != same_experts_.end()) {
    for (const TaskId other : later->second) set(other, experts, 0);
  }
  return set(task, experts, there);
}

int32_t TravelTurns::set(TaskId task, std::span<const BlockId> experts, size_t there) {
  const Range& range = of_task_.at(task);
  const DecidedTurns& of = decided_.at(task);
  const auto each = static_cast<size_t>(of.wave);
  int32_t used = 0;
  size_t begin = 0;
  for (size_t i = 0; i < range.count; ++i) {
    TravelTurn& turn = turns_[range.first + i];
    const size_t most = i == 0 && there > 0 ? std::min(there, each) : each;
    const auto own = experts.subspan(begin, std::min(most, experts.size() - begin));
    if (!own.empty()) ++used;
    turn.blocks.assign(own.begin(), own.end());
    turn.wave = {static_cast<int32_t>(begin), static_cast<int32_t>(begin + own.size())};
    turn.next_use.assign(own.size(), of.next_use);
    turn.last = of.adds_last ? turn.blocks : std::vector<BlockId>{};
    turn.bytes = bytes_of(turn);
    begin += own.size();
  }
  HEARTH_CHECK(begin == experts.size(), "loads: experts without a turn");
  return std::max(1, used);
}

void TravelTurns::add(TaskId id, const Task& task, const ParameterTable& table, int32_t wave) {
  const std::set<BlockId> away = blocks_away(table, task);
  if (away.empty()) return;
  const std::vector<BlockId> all(away.begin(), away.end());
  const auto count = static_cast<int32_t>(all.size());
  const bool in_waves = task.kind == TaskKind::experts && wave > 0 && wave < count;
  HEARTH_CHECK(!in_waves || task.part.all(), "loads: waves of a part of a layer");
  const int32_t each = in_waves ? wave : count;
  of_task_[id] = {turns_.size(), static_cast<size_t>((count + each - 1) / each)};
  for (int32_t begin = 0; begin < count; begin += each) {
    const int32_t end = std::min(count, begin + each);
    TravelTurn turn;
    turn.task = id;
    turn.with_gradient = adds_gradients(task);
    turn.blocks.assign(all.begin() + begin, all.begin() + end);
    if (in_waves) turn.wave = {begin, end};
    turn.bytes = bytes_of(turn);
    turns_.push_back(std::move(turn));
  }
}

/// With its adapter.
uint64_t TravelTurns::bytes_of(BlockId block, Cargo cargo) const {
  uint64_t sum = items_.layout(block, cargo).slot_bytes();
  if (const auto adapter = items_.adapter_of(block)) {
    sum += items_.layout(*adapter, cargo).slot_bytes();
  }
  return sum;
}

uint64_t TravelTurns::bytes_of(const TravelTurn& turn) const {
  uint64_t sum = 0;
  for (const BlockId block : turn.blocks) {
    sum += bytes_of(block, Cargo::weights);
    if (turn.with_gradient) sum += bytes_of(block, Cargo::gradient);
  }
  return sum;
}

void TravelTurns::find_next_uses() {
  std::map<BlockId, Position> next;
  std::set<BlockId> added;  // to whose gradients a later turn adds
  for (size_t i = turns_.size(); i-- > 0;) {
    if (const auto decided = decided_.find(turns_[i].task); decided != decided_.end()) {
      DecidedTurns& of = decided->second;
      const Range& range = of_task_.at(turns_[i].task);
      if (i != range.first) continue;  // all turns of the task are seen with the first
      const BlockId any = of.candidates.front();
      const auto found = next.find(any);
      of.next_use = found == next.end() ? kNever : found->second;
      of.adds_last = turns_[i].with_gradient && !added.contains(any);
      for (const BlockId block : of.candidates) {
        if (turns_[i].with_gradient) added.insert(block);
        next[block] = static_cast<Position>(i);
      }
      set(turns_[i].task, of.expected, 0);
      continue;
    }
    for (const BlockId block : turns_[i].blocks) {
      if (turns_[i].with_gradient && added.insert(block).second) turns_[i].last.push_back(block);
      const auto found = next.find(block);
      turns_[i].next_use.push_back(found == next.end() ? kNever : found->second);
      next[block] = static_cast<Position>(i);
    }
  }
}

const TravelTurns::Range* TravelTurns::of_task(TaskId task) const {
  const auto found = of_task_.find(task);
  return found == of_task_.end() ? nullptr : &found->second;
}

namespace {

/// A block of a turn, and when it is asked for: the lowest key first.
struct AheadBlock {
  size_t turn = 0;
  int32_t rank = -1;  // of an expert of a later stage; -1: of what comes before all of these
  BlockId block = 0;
};

/// What was asked for, each block and each accumulator once.
class AskedBlocks {
 public:
  explicit AskedBlocks(size_t blocks) : asked_(blocks) {}
  bool has(BlockId block, bool with_gradient) const {
    return asked_[static_cast<size_t>(block)] > (with_gradient ? 1 : 0);
  }
  void add(BlockId block, bool with_gradient) {
    uint8_t& of = asked_[static_cast<size_t>(block)];
    of = std::max<uint8_t>(of, with_gradient ? 2 : 1);
  }

 private:
  std::vector<uint8_t> asked_;  // by block: 1 for its weights, 2 for its accumulator, too
};

}  // namespace

TravelTurns::Ahead TravelTurns::asked_from(size_t next, int32_t stage) const {
  Ahead result;
  result.end = next;
  if (!inter_stage_) return result;
  AskedBlocks asked(blocks_);
  uint64_t bytes = 0;
  int32_t rank = 0;
  const auto ask = [&](const TravelTurn& turn, std::span<const BlockId> blocks) {
    uint64_t more = 0;
    for (const BlockId block : blocks) {
      if (!asked.has(block, false)) more += bytes_of(block, Cargo::weights);
      if (turn.with_gradient && !asked.has(block, true)) more += bytes_of(block, Cargo::gradient);
    }
    if (bytes + more > ahead_bytes_) return false;
    bytes += more;
    ++rank;
    for (const BlockId block : blocks) {
      if (asked.has(block, turn.with_gradient)) continue;
      asked.add(block, turn.with_gradient);
      result.wants.load.push_back({block, Priority::stage, rank, turn.with_gradient});
    }
    return true;
  };
  for (bool is_full = false; next < turns_.size() && !is_full;) {
    if (turns_[next].stage == stage) {
      is_full = !ask(turns_[next], turns_[next].blocks);
      if (!is_full) ++next;
      continue;
    }
    std::vector<AheadBlock> of_stage;
    size_t end = next;
    for (; end < turns_.size() && turns_[end].stage == turns_[next].stage; ++end) {
      const TravelTurn& turn = turns_[end];
      const bool is_decided = decided_.contains(turn.task);
      for (size_t i = 0; i < turn.blocks.size(); ++i) {
        const int32_t of_expert = turn.wave.begin + static_cast<int32_t>(i);
        of_stage.push_back({end, is_decided ? of_expert : -1, turn.blocks[i]});
      }
    }
    std::ranges::stable_sort(of_stage, {}, &AheadBlock::rank);
    for (const AheadBlock& of : of_stage) {
      is_full = is_full || !ask(turns_[of.turn], std::span(&of.block, 1));
    }
    next = end;
  }
  const auto is_asked = [&](const TravelTurn& turn) {
    return std::ranges::all_of(turn.blocks,
                               [&](BlockId block) { return asked.has(block, turn.with_gradient); });
  };
  while (result.end < turns_.size() && is_asked(turns_[result.end])) ++result.end;
  return result;
}

Wants TravelTurns::wants_of_split(TaskId task, std::span<const BlockId> experts,
                                  std::span<const Where> where, Priority priority) const {
  const std::vector<BlockId>& candidates = decided_.at(task).candidates;
  const bool with_gradient = turns_[of_task_.at(task).first].with_gradient;
  ExpertSplit split;
  split.reasons.resize(candidates.size());
  for (const BlockId block : experts) split.device.push_back(block - candidates.front());
  std::vector<ExpertState> states(candidates.size());
  for (size_t e = 0; e < states.size(); ++e) states[e].where = where[e];
  Wants wants = split_wants(split, candidates, states, priority, with_gradient);
  // What is there or comes stays, but is asked for no more: after an update it would come again.
  for (size_t e = 0; e < candidates.size(); ++e) {
    const bool has_come = where[e] == Where::coming || where[e] == Where::here;
    if (has_come && std::ranges::find(experts, candidates[e]) == experts.end()) {
      wants.drop.push_back(candidates[e]);
    }
  }
  uint64_t bytes = 0;
  const auto first_over = std::ranges::find_if(wants.load, [&](const BlockWant& want) {
    TravelTurn of;
    of.blocks = {want.block};
    of.with_gradient = with_gradient;
    bytes += bytes_of(of);
    return bytes > ahead_bytes_;
  });
  wants.load.erase(first_over, wants.load.end());
  return wants;
}

}  // namespace hearth
