// Makes a schedule from tasks in order: bodies declare values, the builder turns them into buffers,
// lifetimes and addresses. Planners only decide the order.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// What every list of a run is planned from. Refers to objects of the caller.
struct PlanInput {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  const OpSet& ops;
  int64_t tokens = 0;         // bound of a micro-batch
  int64_t longest = 0;        // bound of a sequence
  int64_t micro_batches = 1;  // of a step
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows = 0);

  /// Appends a task. A value that it writes becomes a new buffer; one that it reads is the newest
  /// of that name; one that is given is made on first use.
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch);

  /// Lifetimes, classes and addresses; the validated schedule.
  Schedule finish();

 private:
  using Key = std::tuple<Value, int32_t, int32_t>;
  BufferId buffer_of(const Port& port, int32_t layer, int32_t micro_batch);
  BufferId new_buffer(const Port& port, const Key& key, BufferClass use);

  const PlanInput& input_;
  Schedule schedule_;
  std::map<Key, BufferId> newest_;
};

}  // namespace hearth
