// What the tasks of a device need of its slots, turn by turn.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "plan/decisions/foresight.h"
#include "plan/loader/travel_items.h"
#include "plan/loader/wants.h"
#include "plan/schedule.h"

namespace hearth {

/// How blocks are loaded to a device.
struct LoadRule {
  /// Of weights and accumulators that are asked for ahead of their use; 0: nothing is loaded before the
  /// task that needs it begins.
  uint64_t ahead_bytes = 0;
  /// Experts that a task computes at one time; 0: all.
  int32_t wave = 0;
  LoadPhases phases = {};
  std::vector<int32_t> stages = {};  // by layer: its stage; empty: all are of one
};

/// A task of a device takes one turn, and a task of experts one for each wave.
struct TravelTurn {
  TaskId task = 0;
  std::vector<BlockId> blocks;  // to lease; their adapters come with them
  ExpertWave wave;
  bool with_gradient = false;
  int32_t stage = 0;  // of its layer, forward and backward apart
  uint64_t bytes = 0;
  std::vector<Position> next_use;  // of each block, behind this turn
  std::vector<BlockId> last;       // whose accumulators no later turn adds to
};

/// The turns of a task whose experts a split decides: as many as all of them would take, and one for
/// those that are there while others still come. `candidates`: the experts that a split may give to
/// the device.
struct DecidedTurns {
  std::vector<BlockId> candidates;
  std::vector<BlockId> expected;  // of these, those that the plan expects there
  Position next_use = kNever;     // of each candidate that is chosen, behind these turns
  bool adds_last = false;         // no later turn of the device may add to their accumulators
  int32_t wave = 0;               // most experts of a turn
};

/// The turns of one device in one schedule, in the order of the schedule. Pure: whoever drives a
/// loader by it, a run or a simulation, asks for the same blocks in the same order.
class TravelTurns {
 public:
  /// Turns of a task, from `first` on.
  struct Range {
    size_t first = 0, count = 0;
  };

  TravelTurns(const TravelItems& items, const ParameterTable& table, const Schedule& schedule,
              Place place, const LoadRule& rule);

  const std::vector<TravelTurn>& turns() const { return turns_; }
  /// Null: the task needs nothing of elsewhere.
  const Range* of_task(TaskId task) const;
  /// Null: the experts of the task are not decided while the step runs. Until `choose` its turns have
  /// those that the plan expects.
  const DecidedTurns* decided(TaskId task) const;
  /// The turns of a decided task get these experts, in this order; turns that are left are empty. The
  /// first `there` experts have a turn of their own, which does not wait for the others; 0: they do not.
  /// Later tasks of the same rows and layer get them, too: backward has the experts of its forward. What
  /// `ahead` asks for later follows. Returns how many turns of the task have experts, at least 1.
  int32_t choose(TaskId task, std::span<const BlockId> experts, size_t there = 0);
  /// What is asked for when the turn at a position has its blocks: those of the turns that follow,
  /// within the bytes of the rule. What several turns need counts once. Turns of the same stage come
  /// one after the other. Of a later stage, the blocks that no split decides come first, then the
  /// experts rank by rank across its layers, as APTMoE has it (III-C 1). `end`: the position behind
  /// the last turn before which nothing is left to ask for.
  struct Ahead {
    Wants wants;
    size_t end = 0;
  };
  Ahead ahead(size_t position) const { return asked_from(position + 1, turns_[position].stage); }
  /// The same before the first turn. A stage of a pipeline has time for it until the first tokens come.
  Ahead at_begin() const { return asked_from(0, turns_.empty() ? 0 : turns_.front().stage); }
  /// When a split gives these experts to a decided task, or is foretold to do so, before the task
  /// begins: they are asked for in the order of computing, within the bytes of the rule, and what is
  /// queued of the others is dropped. `where`: of each candidate.
  Wants wants_of_split(TaskId task, std::span<const BlockId> experts, std::span<const Where> where,
                       Priority priority) const;

 private:
  /// Of the turns from `next` on, behind one of this stage.
  Ahead asked_from(size_t next, int32_t stage) const;
  int32_t set(TaskId task, std::span<const BlockId> experts, size_t there);
  void find_same_experts(const Schedule& schedule);
  void add(TaskId id, const Task& task, const ParameterTable& table, int32_t wave);
  void add_decided(TaskId id, const Schedule& schedule, std::vector<BlockId> candidates,
                   int32_t wave);
  uint64_t bytes_of(const TravelTurn& turn) const;
  uint64_t bytes_of(BlockId block, Cargo cargo) const;
  void find_stages(const Schedule& schedule, const LoadRule& rule);
  void find_next_uses();

  const TravelItems& items_;
  const size_t blocks_;
  const uint64_t ahead_bytes_;
  const bool inter_stage_;
  std::vector<TravelTurn> turns_;
  std::map<TaskId, Range> of_task_;
  std::map<TaskId, DecidedTurns> decided_;
  std::map<TaskId, std::vector<TaskId>>
      same_experts_;  // of decided tasks: later ones of their rows
};

}  // namespace hearth
