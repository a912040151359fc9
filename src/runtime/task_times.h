// When the tasks of a run began and ended.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "device/link.h"
#include "plan/schedule.h"
#include "plan/trace.h"
#include "runtime/workspace.h"

namespace hearth {

/// Begin and end of the tasks of a run, in seconds from its start, with what copies carried and what
/// workers computed. On devices whose work is done when a call returns, the times are the host
/// clock's. On other devices they come from events, which are read after the run.
///
/// `begin` and `end` of a task come from the thread of its stream.
class TaskTimes {
 public:
  /// `devices`: by place. All arguments must outlive the object.
  TaskTimes(const Schedule& schedule, std::vector<Device*> devices, const Workspace& workspace,
            LinkClock& clock);

  /// A run begins. Without `keep` nothing is measured until the next start.
  void start(bool keep);
  /// The task begins, and what it needs is there.
  void begin(TaskId task);
  /// The task waited so long, after its begin, for blocks that had to be loaded.
  void waited(TaskId task, double seconds);
  /// `bytes`: what a copy carried.
  void end(TaskId task, uint64_t bytes);
  /// Replaces the content of `trace` by the tasks that ran, sorted by begin.
  void fill(Trace& trace);

 private:
  struct Mark {
    double at = 0;
    std::unique_ptr<Event> event;
  };
  struct Times {
    Mark begin, end;
    uint64_t bytes = 0;
    double cpu_s = 0, waited_s = 0;
    bool ran = false;
  };

  Stream& stream_of(TaskId task) const;
  Device& device(Place place) const { return *devices_[static_cast<size_t>(place)]; }
  void mark(TaskId task, Mark& mark);
  double resolve(Mark& mark, Place place);

  const Schedule& schedule_;
  const std::vector<Device*> devices_;
  const Workspace& workspace_;
  LinkClock& clock_;
  bool keep_ = false;
  double start_ = 0;
  std::vector<Mark> bases_;  // by place
  std::vector<Times> times_;
};

}  // namespace hearth
