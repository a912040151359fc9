// Makes a schedule from tasks in order. A planner decides the order of the tasks and their places.
// The builder asks the bodies which values they touch, makes the buffers with their lifetimes and
// addresses, and inserts copies between places.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "plan/schedule.h"

namespace hearth {

/// Inputs that all schedules of a run share. Does not own the objects that it refers to.
struct PlanInput {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  std::vector<const OpSet*> ops;  // by place: the host, then the devices of the run
  int64_t tokens = 0;             // upper bound per micro-batch
  int64_t longest = 0;            // upper bound per sequence
  int64_t micro_batches = 1;      // per step
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows = 0);

  /// Appends a task at a place. A write creates a buffer there. A read uses the latest version of
  /// the value; if that version is only at another place, a copy task is inserted first. Input
  /// values are allocated on the host on first use.
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
           Place place = kHostPlace);
  /// Whether a task of this kind would touch blocks at the place.
  bool has_blocks(TaskKind kind, Phase phase, int32_t layer, Place place) const;

  /// Inserts the copies of results to the host, assigns lifetimes, classes and addresses, and
  /// returns the validated schedule.
  Schedule finish();

 private:
  using Key = std::tuple<Value, int32_t, int32_t>;
  TaskShape shape_of(Phase phase, int32_t layer, Place place) const;
  Key key_of(const Port& port, int32_t layer, int32_t micro_batch) const;
  BufferId buffer_of(const Port& port, const Key& key, Place place);
  BufferId new_buffer(const Port& port, const Key& key, BufferClass use, Place place);
  void bring(const Port& port, const Key& key, Phase phase, Place place);
  void add_copy(BufferId from, const Key& key, Phase phase, Place place);
  void set_lifetimes();

  const PlanInput& input_;
  Schedule schedule_;
  std::map<Key, std::map<Place, BufferId>>
      newest_;  // buffers with the latest version of a value, by place
};

}  // namespace hearth
