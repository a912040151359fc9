// A planner places the blocks and writes the schedules of a run. Each mode of running a model is
// one planner. The rest of the program uses the table of planners and names no mode.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "modes/placement.h"
#include "plan/schedule_builder.h"

namespace hearth {

/// The schedule of a training step, and its parameters.
struct TrainSchedule {
  Schedule schedule;
  int64_t group = 1;            // micro-batches that are in work at one time
  bool recompute = false;       // backward recomputes activations instead of keeping them
  double span = 0;              // of a pipeline: operations of its longest chain of passes; else 0
  bool inputs_on_host = false;  // PlanInput::inputs_on_host
  std::vector<int32_t> expert_shift = {};  // RankShards::expert_shift
  ZebraOrder zebra_order = {};             // PlanInput::zebra_order
  std::vector<DomainLevel> levels = {};    // RankShards::levels
  int32_t fetched_from = -1;               // RankShards::fetched_from
};

/// Whether a run with this schedule fits every budget.
using FitTest = std::function<bool(const TrainSchedule&)>;

class Planner {
 public:
  virtual ~Planner() = default;
  /// The name in plans and journals.
  virtual std::string_view name() const = 0;

  /// The schedule for a given group and recompute.
  virtual TrainSchedule train(const PlanInput& input, int64_t group, bool recompute) const = 0;
  /// The schedule with the largest group that fits. If `recompute` is unset, it recomputes only if
  /// a group of 1 does not fit otherwise. If no group fits, returns the schedule that needs least;
  /// the caller checks. Memory must not fall as the group grows.
  TrainSchedule train_within(const PlanInput& input, std::optional<bool> recompute,
                             const FitTest& fits) const;
  // The same in every mode.
  /// The updates that are due after the last step of a schedule that rotates.
  Schedule drain(const PlanInput& input) const;
  /// Forward and loss of one micro-batch.
  Schedule eval(const PlanInput& input) const;
  /// Forward of new tokens after at most `cache_rows` cached tokens; logits of the last token.
  Schedule decode(const PlanInput& input, int64_t cache_rows) const;
};

/// Sets the place of every block. Adapters get the places of their bases. An embedding that is also
/// the head is placed with the head.
void place_blocks(ParameterTable& table, const ModelSpec& spec, const Placement& placement);

/// Where the tasks of backward read each block, if backward is cut apart from forward; else empty.
std::vector<Place> backward_places(ParameterTable table, const ModelSpec& spec,
                                   const Placement& placement);

/// Every planner.
std::span<const Planner* const> planners();
/// The planner of a mode; a bug if there is none.
const Planner& planner_of(std::string_view name);

}  // namespace hearth
