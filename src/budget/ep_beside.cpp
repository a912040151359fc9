#include "budget/ep_beside.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "budget/placement_plan.h"
#include "plan/rank_simulation.h"
#include "runtime/shared_parameters.h"

namespace hearth {

namespace {

/// Ranks that share the experts: as many as a group of zebra has, or fewer if there are fewer experts.
int32_t sharing_ranks(const RankShards& shards, int64_t experts) {
  int32_t sharing = shards.expert_ranks;
  while (sharing > experts || shards.ranks % sharing != 0) --sharing;
  return sharing;
}

/// None: the micro-batches do not divide.
std::optional<PlanRequest> with_ep(PlanRequest request, int64_t experts) {
  RankShards& shards = request.shards;
  const int64_t micro_batches = request.micro_batches * shards.computing();
  if (shards.shards % shards.ranks != 0) shards.shards = shards.ranks;
  if (experts < 1 || micro_batches % shards.shards != 0) return std::nullopt;
  shards.expert_ranks = sharing_ranks(shards, experts);
  shards.attention_ranks = 0;
  shards.expert_shift.clear();
  request.zebra_order.clear();
  request.micro_batches = micro_batches / shards.ranks;
  return request;
}

}  // namespace

std::optional<EpBeside> ep_beside(const PlacedModel& zebra, const PlanRequest& request,
                                  const StepWork& work) {
  const std::optional<PlanRequest> of = with_ep(request, zebra.opened->spec.experts);
  if (!of) return std::nullopt;
  PlacedModel ep = zebra;
  ep.zebra.reset();
  own_blocks(ep.table, of->shards);
  RankCosts& between = ep.rates->costs.ranks;
  between.shards = of->shards;
  between.owners = owners_of(ep.table, of->shards);
  PlanSubject subject = subject_of(ep);
  subject.planner = &planner_of("ep");
  PlacementPlan planned = plan_placement(subject, *of);
  if (!planned.plan.train || !planned.plan.fits()) return std::nullopt;
  ep.placement = std::move(planned.placement);
  const Schedule& schedule = planned.plan.train->schedule;
  std::vector<RankSchedule> ranks;
  for (const RankSpeed& speed : zebra.zebra->speeds) {
    ranks.push_back({&schedule, task_demands(schedule, work.batches, ep.opened->spec, planned.table,
                                             costs_at(ep, speed))});
  }
  const double seconds = simulate_ranks(ranks).front().time_s;
  return EpBeside{seconds + between.around_tasks_s(), of->shards.shards};
}

}  // namespace hearth
