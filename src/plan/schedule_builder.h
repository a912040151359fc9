// Makes a schedule from tasks in order: bodies declare values, the builder turns them into buffers,
// lifetimes and addresses, and brings values to the places where they are read. Planners only decide
// the order and the places of tasks; the blocks of a task lie where it runs.
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
  std::vector<const OpSet*> ops;  // by place: the host, then the devices of the run
  int64_t tokens = 0;             // bound of a micro-batch
  int64_t longest = 0;            // bound of a sequence
  int64_t micro_batches = 1;      // of a step
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows = 0);

  /// Appends a task at a place. A value that it writes becomes a new buffer there; one that it reads
  /// is the newest of that name, and where that is at another place only, a copy of it comes before
  /// the task; one that is given is made on the host on first use.
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
           Place place = kHostPlace);
  /// Whether a task of this kind would touch blocks at the place.
  bool has_blocks(TaskKind kind, Phase phase, int32_t layer, Place place) const;

  /// Copies what is read after the list to the host; lifetimes, classes and addresses; the validated
  /// schedule.
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
  std::map<Key, std::map<Place, BufferId>> newest_;  // the places that have the newest of a value
};

}  // namespace hearth
