// The weights of a device whose blocks have their homes on the host: each task gets copies of its
// blocks, and a table that shows them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "plan/loader/travel_turns.h"
#include "plan/schedule.h"
#include "runtime/residency.h"

namespace hearth {

/// A task of experts computes them in waves: one is leased, computed and given up before the next, so
/// that a layer may be larger than the slots.
///
/// Of one device and one schedule. The calls come from the thread of the device's compute stream, one
/// task after the other, in the order of the schedule or in another legal one.
class TravellingWeights {
 public:
  /// All arguments must outlive the object. `homes` must be bound.
  TravellingWeights(Residency& residency, const ParameterTable& homes, const Schedule& schedule,
                    Place place, const LoadRule& rule);

  /// Before the first task. Copies of what the schedule updates before their use are given up; they come
  /// once it is updated.
  void begin_step();
  /// Whether a split decides which experts the task computes: then `choose` comes before its turns.
  bool is_decided(TaskId task) const { return turns_.decided(task) != nullptr; }
  /// The experts that the split gives to the task. The backward of the same rows will have them, too.
  void choose(TaskId task, std::span<const BlockId> experts);
  /// The split has given these experts to the task, which has not begun. Asks for them, and for what
  /// is queued of the others no more. From the thread of the stream that decided; `choose` follows.
  void foresee(TaskId task, std::span<const BlockId> experts);
  /// Before the first task: a decided task will probably have these experts.
  void expect(TaskId task, std::span<const BlockId> experts) { set_turns(task, experts); }
  /// The same while tasks run, of a task whose split is not made yet: asks for them, less urgently than
  /// `foresee`. From the thread of the stream that decides.
  void foretell(TaskId task, std::span<const BlockId> experts);
  /// Before the first task, and behind `expect`: asks for what the first tasks need. So a device has it
  /// by the time the first tokens reach it.
  void begin_loads();
  /// How often the body of a task runs.
  int32_t turns(TaskId task) const;
  /// Before each: leases the blocks, asks for those that follow, and lets the stream wait for the
  /// copies. Until `end` the table has views of these blocks alone. Returns the experts of the turn.
  /// Devices without a clock of their own: returns when the copies are there.
  ExpertWave begin(TaskId task, int32_t turn, Stream& stream);
  /// Behind what the body issued: the copies may be given up, and accumulators that no later task of
  /// the schedule adds to go home.
  void end(Stream& stream);
  ParameterTable& table() { return table_; }

  enum class Came : uint8_t { late, before, not_here };
  /// By number of the experts of the task: whether their weights were there or under way when it was
  /// foreseen, else when it began last; `not_here`: a split gave them to another place. Empty: the
  /// task needs no experts of elsewhere.
  std::span<const Came> came_before(TaskId task) const;

  /// Accumulators of these blocks are at home when it returns.
  void bring_home(std::span<const BlockUse> blocks);
  /// Around an update task on the host; of a schedule that rotates, `begin_step` stands for the first.
  void begin_update(const Task& update);
  void updated(const Task& update);
  /// Around a task of the host that adds to the gradients of experts that may be here, too. From the
  /// thread of the host's stream.
  void begin_adding(std::span<const BlockId> experts);
  void added(std::span<const BlockId> experts);

 private:
  void begin_change(const Task& update);
  void see_what_came(const TravelTurns::Range& turns);
  void show(const LeasedBlock& leased, bool with_gradient);
  void hide(BlockId block);

  /// What was foreseen since the last call: turns that are asked for ahead follow. Under the mutex.
  void take_foreseen();
  void set_turns(TaskId task, std::span<const BlockId> experts, size_t there = 0);
  std::vector<Where> where_of(std::span<const BlockId> blocks) const;

  Residency& residency_;
  const Schedule& schedule_;
  const LoadPhases phases_;
  ParameterTable table_;  // homes' tensors, whose copies are the leased ones
  TravelTurns turns_;
  std::map<TaskId, std::vector<Came>> came_before_;  // of tasks of experts
  struct Foreseen {
    TaskId task = 0;
    std::vector<BlockId> experts;
    std::vector<Came> came;  // before they were asked for; empty: only foretold
    size_t there = 0;        // so many of the first experts had come or were coming
  };
  std::mutex foreseeing_;  // held while asking for loads, so that an older split does not ask last
  std::vector<Foreseen> foreseen_;          // not taken yet
  std::set<TaskId> seen_;                   // tasks of this step whose `came_before_` is known
  std::map<TaskId, int32_t> chosen_turns_;  // of decided tasks, in this step
  std::map<TaskId, size_t> there_;          // of decided tasks that were foreseen in this step
  size_t asked_end_ = 0;      // position behind the last turn whose blocks were asked for ahead
  size_t position_ = 0;       // of the turn that runs
  std::vector<Lease> lease_;  // of the turn that runs, if it needs blocks
};

}  // namespace hearth
