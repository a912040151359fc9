// The weights of a device whose blocks have their homes on the host: each task gets copies of its
// blocks, and a table that shows them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/schedule.h"
#include "runtime/residency.h"

namespace hearth {

/// How far ahead of their use blocks are loaded.
struct LoadAhead {
  /// Bytes of weights and accumulators that the next tasks of the device need; 0: nothing is loaded
  /// before the task that needs it begins.
  uint64_t bytes = 0;
};

/// Of one device and one schedule. The calls come from the thread of the device's compute stream, one
/// task after the other, in the order of the schedule or in another legal one.
class TravellingWeights {
 public:
  /// All arguments must outlive the object. `homes` must be bound.
  TravellingWeights(Residency& residency, const ParameterTable& homes, const Schedule& schedule,
                    Place place, LoadAhead ahead);

  /// Before the body of a task at the place: leases its blocks, asks for those of the tasks that
  /// follow, and lets the stream wait for the copies. The table has views of these blocks alone, until
  /// `end`.
  ParameterTable& begin(TaskId task, Stream& stream);
  /// Behind what the body issued: the copies may be given up.
  void end(Stream& stream);

  /// Accumulators of all blocks are at home when it returns.
  void bring_home();
  /// Around an update task on the host.
  void begin_update(const Task& update);
  void updated(const Task& update);

 private:
  /// What a task needs of the device's slots.
  struct Need {
    std::vector<BlockId> blocks;
    bool with_gradient = false;
    uint64_t bytes = 0;
    std::vector<Position> next_use;  // of each block, behind this task
  };
  Need need_of(const Task& task) const;
  void ask_ahead(size_t position);
  void show(const LeasedBlock& leased, bool with_gradient);
  void hide(BlockId block);

  Residency& residency_;
  ParameterTable table_;  // homes' tensors, whose copies are the leased ones
  LoadAhead ahead_;
  std::vector<Need> needs_;              // in the order of the schedule
  std::map<TaskId, size_t> position_of_;  // in needs_
  std::vector<Lease> lease_;             // of the task that runs, if it needs blocks
};

}  // namespace hearth
