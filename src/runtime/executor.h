// Runs a schedule. Each stream has one thread of the workspace, which runs the stream's tasks in
// order. Before each task the stream waits for the task's dependencies on other streams. The thread
// calls the body or makes the copy, and records the trace. At a place with a cost table, it then
// waits until the table's time is over (runtime/pacer.h). The executor knows neither the planner nor
// the kinds of devices.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "plan/schedule.h"
#include "plan/trace.h"
#include "runtime/pacer.h"
#include "runtime/travelling_weights.h"
#include "runtime/workspace.h"

namespace hearth {

/// What tasks compute with. The caller owns the objects, which must outlive the executor.
struct PlaceParts {
  Device& device;
  const OpSet& ops;
  PlaceCosts costs = {};           // paces the tasks, if there is a table
  Residency* residency = nullptr;  // of blocks that do not live there; null: all do
  LoadRule loads = {};             // to the slots of the residency
};
struct ExecutorParts {
  std::vector<PlaceParts> places;  // the host, then the devices of the run
  Workspace& workspace;
  const ModelSpec& spec;
  const RunSettings& settings;
  ParameterTable& table;
  SplitRule* splits = nullptr;  // of schedules that decide splits; called by streams of the host
  LinkClock& clock = steady_link_clock();  // of pacing, and of the trace
  RankWork* ranks = nullptr;               // of schedules of several logical shards or ranks
};

/// How to run the schedule once.
struct RunOptions {
  Trace* trace = nullptr;  // filled if set, sorted by begin; device tasks use the device's clock
  /// Called before every task until the first update, by the threads of all streams. If it returns
  /// true, the step is abandoned: no weight has changed, and gradients are undefined. If the schedule
  /// rotates, it is called before every task, and the updates are carried through in any case: they are
  /// of the step before.
  std::function<bool()> abandon = {};
  /// Called before each update and give by the thread of its stream, never concurrently. It may block
  /// until a save has read what the task will change.
  std::function<void(const Task&)> before_update = {};
  /// Called at the first error of a task, by the thread of its stream, while the other streams still run.
  std::function<void(const Error&)> failed = {};
  /// For tests: runs the tasks in this order, on the calling thread. The order must respect the
  /// dependencies, and the streams must finish a task before its call returns.
  std::vector<TaskId> order = {};
  /// For tests: overwrites every buffer with NaN patterns after its last use. Needs `order`, or a
  /// schedule of one stream.
  bool poison = false;
};

/// `run` allocates no buffer. Not thread-safe. If a body throws, all streams stop and `run`
/// rethrows the exception; weights are then undefined, and the executor must not be used again.
class Executor {
 public:
  Executor(const ExecutorParts& parts, const Schedule& schedule);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The host's buffer of an input (to fill before a run) or of a result (to read after it), in its
  /// full size. It is a bug if the schedule has no such value.
  View value(Value value, int32_t layer = -1, int32_t micro_batch = -1) const;
  /// An input or a result of type f64 [1].
  double& scalar(Value value, int32_t micro_batch = -1) const;

  /// Runs the schedule once. batches[m] is the shape of micro-batch m, within the schedule's
  /// bounds. Returns false if the step was abandoned.
  bool run(std::span<const BatchShape> batches, const RunOptions& options = {});
  /// Routed tokens of the last run whose expert was loaded to a device to compute them, all layers,
  /// forward and backward; of these, those whose expert was there or under way (came_before).
  struct LoadedExperts {
    double tokens = 0;
    double came_before = 0;
  };
  LoadedExperts loaded_experts() const;
  /// What was paced in the last run, by place.
  const std::vector<PacedTasks>& paced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
