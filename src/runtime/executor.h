// Runs a schedule: a thread a stream takes its tasks in list order, waits for what other streams
// must have done, calls the body or carries a copy, records the trace. It never asks which mode
// made the list, nor what kind of device a place is.
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

/// What tasks compute with. Refers to objects of the caller that must outlive the executor.
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

/// How one run of the list is done; the defaults are what training uses.
struct RunOptions {
  Trace* trace = nullptr;  // filled if given, in order of beginning; of devices by their own clocks
  /// Asked before every task until the first update; true abandons the step: no weight has
  /// changed, gradients are undefined. Called from all streams' threads.
  std::function<bool()> abandon = {};
  /// Called before each update on its stream's thread, for one at a time, and may wait: for a save
  /// that still reads what the update changes.
  std::function<void(const Task&)> before_update = {};
  /// For tests, on streams whose work is done when a call returns: another legal order, on the
  /// calling thread; buffers overwritten by NaN patterns after their last use (with an order or one
  /// stream).
  std::vector<TaskId> order = {};
  bool poison = false;
};

/// `run` allocates no buffer. Not thread-safe. An exception of a body ends the run on all streams
/// and is raised from `run`; weights are then undefined and the executor must not be used again.
class Executor {
 public:
  Executor(const ExecutorParts& parts, const Schedule& schedule);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The host's buffer of a given value (to fill before a run) or a kept one (to read after it), of
  /// its full size. A bug if the list has none.
  View value(Value value, int32_t layer = -1, int32_t micro_batch = -1) const;
  /// Such a value of one f64.
  double& scalar(Value value, int32_t micro_batch = -1) const;

  /// Runs the list once; batches[m] is the shape of micro-batch m, within the bounds. False if the
  /// step was abandoned.
  bool run(std::span<const BatchShape> batches, const RunOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
