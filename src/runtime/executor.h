// Runs a schedule: a thread a stream takes its tasks in list order, waits for what other streams
// must have done, calls the body, records the trace. It never asks which mode made the list.
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
struct ExecutorParts {
  Device& device;
  Workspace& workspace;
  const OpSet& ops;
  const ModelSpec& spec;
  const RunSettings& settings;
  ParameterTable& table;
};

/// How one run of the list is done; the defaults are what training uses.
struct RunOptions {
  Trace* trace = nullptr;  // filled if given, in order of beginning
  /// Asked before every task until the first update; true abandons the step: no weight has
  /// changed, gradients are undefined. Called from all streams' threads.
  std::function<bool()> abandon = {};
  /// Called before each update on its stream's thread, and may wait: for a save that still reads what
  /// the update changes.
  std::function<void(const Task&)> before_update = {};
  /// For tests, with one stream: another legal order; buffers overwritten by NaN patterns after
  /// their last use.
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

  /// The buffer of a given value (to fill before a run) or a kept one (to read after it), of its
  /// full size. A bug if the list has none.
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
