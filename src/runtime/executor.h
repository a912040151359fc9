// Runs a schedule. One thread per stream takes the stream's tasks in order, waits for the tasks of
// other streams that they depend on, calls the body or makes the copy, and records the trace. The
// executor never asks which mode made the schedule, or what kind of device a place is.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "plan/schedule.h"
#include "plan/trace.h"
#include "runtime/workspace.h"

namespace hearth {

/// What tasks compute with. Refers to objects of the caller, which must outlive the executor.
struct PlaceParts {
  Device& device;
  const OpSet& ops;
};
struct ExecutorParts {
  std::vector<PlaceParts> places;  // the host, then the devices of the run
  Workspace& workspace;
  const ModelSpec& spec;
  const RunSettings& settings;
  ParameterTable& table;
};

/// How to run the schedule once.
struct RunOptions {
  Trace* trace =
      nullptr;  // filled if set, sorted by begin; tasks of a device by the device's clock
  /// Asked before every task until the first update, from the threads of all streams. If it returns
  /// true, the step is abandoned: no weight has changed, and gradients are undefined.
  std::function<bool()> abandon = {};
  /// Called before each update, on the thread of its stream, never twice at once. It may block: a
  /// save may still be reading what the update changes.
  std::function<void(const Task&)> before_update = {};
  /// For tests: runs the tasks in this order, on the calling thread. The order must be legal, and the
  /// streams must be done with a task when its call returns.
  std::vector<TaskId> order = {};
  /// For tests: overwrites every buffer with NaN patterns after its last use. Needs `order`, or a
  /// schedule of one stream.
  bool poison = false;
};

/// `run` allocates no buffer. Not thread-safe. If a body throws, all streams stop and `run` raises
/// the exception; weights are then undefined, and the executor must not be used again.
class Executor {
 public:
  Executor(const ExecutorParts& parts, const Schedule& schedule);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The host's buffer of an input (to fill before a run) or of a result (to read after it), in its
  /// full size. It is a bug if the schedule has no such value.
  View value(Value value, int32_t layer = -1, int32_t micro_batch = -1) const;
  /// An input or a result that is one f64.
  double& scalar(Value value, int32_t micro_batch = -1) const;

  /// Runs the schedule once. batches[m] is the shape of micro-batch m, within the schedule's bounds.
  /// Returns false if the step was abandoned.
  bool run(std::span<const BatchShape> batches, const RunOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
