// Runs the body of one task after the other on one place and takes the time: what is measured is
// what a step runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/stopwatch.h"
#include "device/device.h"
#include "layers/body.h"
#include "runtime/bench_model.h"

namespace hearth {

/// The place that computes.
struct BenchPlace {
  Device& device;
  const OpSet& ops;
  SpaceKind memory = SpaceKind::host;
  Place place = kHostPlace;
  int workers = 1;
  std::vector<int> cores = {};  // logical CPUs of the workers; empty: unbound
  /// Bytes of other memory that are touched before each timed run, where the host reaches the memory:
  /// in a step other tasks have used the caches since a task last had its weights. 0: none.
  uint64_t between_bytes = 0;
  /// Seconds of a clock that never falls, which times tasks (but on a device with a clock of its own)
  /// and what a measurement takes in all. Tests give their own.
  std::function<double()> clock = steady_seconds;
};

/// A task of the bench model.
struct TaskSize {
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  int64_t tokens = 0;   // of the micro-batch; of norm and update 0
  int64_t experts = 0;  // of an experts task: how many experts share the tokens; else 0
};

/// What bench tasks have in common.
struct BenchSubject {
  BenchModel model;
  RunSettings settings;
  CopyPolicy policy;
  int64_t longest = 1;  // most tokens of a sequence
};

/// Memory of the values and the scratch of a task at its place.
struct TaskMemory {
  uint64_t values = 0;
  ScratchNeed scratch = {};
  uint64_t bytes(int workers) const {
    return values + scratch.shared + scratch.per_worker * static_cast<uint64_t>(workers);
  }
};
TaskMemory task_memory(const BenchSubject& subject, const BenchPlace& place, const TaskSize& size);
uint64_t parameter_bytes(const BenchSubject& subject);

/// The trained parameters that a norm or update task works on.
int64_t swept_parameters(const BenchSubject& subject, const BenchPlace& place,
                         const TaskSize& size);

class TaskBench {
 public:
  /// Reserves and fills the memory that all of `sizes` need. `subject` must outlive the bench; its
  /// table is bound to the memory.
  TaskBench(const BenchPlace& place, BenchSubject& subject, std::span<const TaskSize> sizes);
  /// Unbinds the calling thread, which has computed as a worker: who asks for this process's cores
  /// afterwards must see all of them.
  ~TaskBench();
  TaskBench(const TaskBench&) = delete;
  TaskBench& operator=(const TaskBench&) = delete;

  /// Seconds of each of `times` runs; `warm`: after one that warms the caches. Asks `go_on` before
  /// each run but the first, and ends early if it says no; null: never. On devices that work
  /// asynchronously, the device's clock takes the times.
  std::vector<double> run(const TaskSize& size, int times, bool warm = true,
                          const std::function<bool()>& go_on = {});

 private:
  struct Bound;
  Bound bind(const TaskSize& size);
  void give(const Bound& bound, bool all);
  void use_caches();
  double time_of(const Bound& bound);

  BenchPlace place_;
  BenchSubject& subject_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // of the parameters
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> values_, staging_;
  std::vector<std::byte> between_;  // of BenchPlace::between_bytes
};

}  // namespace hearth
