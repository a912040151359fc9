#include "modes/planner.h"

#include <algorithm>

#include "modes/layer_tasks.h"
#include "modes/pipeline.h"
#include "modes/single.h"
#include "modes/zebra.h"

namespace hearth {

TrainSchedule Planner::train_within(const PlanInput& input, std::optional<bool> recompute,
                                    const FitTest& fits) const {
  if (!recompute) {
    TrainSchedule kept = train_within(input, false, fits);
    return fits(kept) ? std::move(kept) : train_within(input, true, fits);
  }
  const bool again = *recompute;
  const int64_t most = input.micro_batches_of_shard();  // a group lies within a shard
  TrainSchedule whole = train(input, most, again);
  if (fits(whole)) return whole;
  TrainSchedule best = train(input, 1, again);
  if (!fits(best)) return best;
  // Memory grows with the group: bisect for the largest that fits.
  int64_t low = 1, high = most - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    TrainSchedule candidate = train(input, middle, again);
    if (fits(candidate)) {
      best = std::move(candidate);
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

Schedule Planner::drain(const PlanInput& input) const { return drain_schedule(input); }
Schedule Planner::eval(const PlanInput& input) const {
  return forward_schedule(input, Pass::eval, 0);
}
Schedule Planner::decode(const PlanInput& input, int64_t cache_rows) const {
  return forward_schedule(input, Pass::decode, cache_rows);
}

void place_blocks(ParameterTable& table, const ModelSpec& spec, const Placement& placement) {
  const auto head = static_cast<int32_t>(spec.layers);
  for (BlockId id = 0; id < std::ssize(table.blocks()); ++id) {
    const Block& own = table.block(id);
    const Block& block = own.kind == BlockKind::adapter ? table.block(own.base) : own;
    Place place = kHostPlace;
    switch (block.kind) {
      case BlockKind::expert:
        place = placement.expert(block.layer, block.expert, spec.experts);
        break;
      case BlockKind::embedding: place = placement.dense(spec.tied_head ? head : -1); break;
      case BlockKind::head: place = placement.dense(head); break;
      default: place = placement.dense(block.layer);
    }
    table.set_place(id, place);
  }
}

std::vector<Place> backward_places(ParameterTable table, const ModelSpec& spec,
                                   const Placement& placement) {
  if (placement.backward.empty()) return {};
  const auto head = static_cast<int32_t>(spec.layers);
  Placement of_backward(placement.backward, placement.experts);
  of_backward.stages.push_back({placement.dense(head), head, head});
  place_blocks(table, spec, of_backward);
  std::vector<Place> places;
  for (const Block& block : table.blocks()) places.push_back(block.place);
  return places;
}

std::span<const Planner* const> planners() {
  static const Planner* const all[] = {&single_planner(), &pipeline_planner(),  &dp_planner(),
                                       &ep_planner(),     &hybrid_ep_planner(), &zebra_planner()};
  return all;
}

const Planner& planner_of(std::string_view name) {
  const auto all = planners();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Planner* p) { return p->name() == name; });
  HEARTH_CHECK(found != all.end(), "planner: no such mode");
  return **found;
}

}  // namespace hearth
