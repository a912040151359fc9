// What rank 0 knows of the other ranks of a run before they start: their devices, how fast these are,
// and what memory they lack.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "budget/zebra_choice.h"

namespace hearth {

/// Devices of other ranks, opened in this process: those that a thread runs with, or in place of those of
/// another process, for a plan.
class RankMachines {
 public:
  /// `leader`: of rank 0. `config`: names the devices of all ranks, if they are not those of rank 0.
  RankMachines(const TrainConfig& config, std::shared_ptr<const OpenedModel> leader);

  std::string devices(int32_t rank) const;
  /// The leader's, if the rank is on the host alike. Null: a GPU of another process. Usage error if this
  /// version has no such ranks.
  std::shared_ptr<const OpenedModel> of(int32_t rank);

 private:
  const TrainConfig& config_;
  std::shared_ptr<const OpenedModel> leader_;
  std::map<int32_t, std::shared_ptr<const OpenedModel>> opened_;
};

/// The trained model on the devices of a rank.
using ModelOfRank = std::function<TrainedModel(std::shared_ptr<const OpenedModel>)>;

/// Of a run with zebra whose ranks are in this process, or are planned as if they were. Places without a
/// table are measured (budget/run_rates.h). `leader` has rank 0's tables. `machines` and `request` must
/// outlive what is returned.
OtherRanks ranks_here(RankMachines& machines, const TrainConfig& config, const PlanRequest& request,
                      const PlacedModel& leader, const ModelOfRank& trained);
/// Of ranks that are processes and have told their speeds (TrainConfig::rank_speeds).
OtherRanks ranks_told(const TrainConfig& config, const PlanRequest& request);

/// What a process tells rank 0 of its speed. Measures as a start does, unless all has a cost table.
/// Empty: not known; errors come when the run begins.
std::string own_speed(const TrainConfig& config, int32_t rank, Reporter& reporter);

}  // namespace hearth
