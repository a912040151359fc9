#include "train/moved_experts.h"

#include <algorithm>

#include "budget/placement_plan.h"
#include "budget/placement_report.h"
#include "model/parameter_memory.h"
#include "runtime/workspace.h"

namespace hearth {

namespace {

BlockId expert_block(const ParameterTable& table, int32_t layer, int32_t expert) {
  return table.find_block(BlockKind::expert, layer, expert);
}

bool have_equal_memory(const ParameterTable& table, const ExpertSwap& swap) {
  const BlockId a = expert_block(table, swap.layer, swap.comes),
                b = expert_block(table, swap.layer, swap.leaves);
  const auto of_a = table.adapter_of(a), of_b = table.adapter_of(b);
  return of_a.has_value() == of_b.has_value() && hearth::have_equal_memory(table, a, b) &&
         (!of_a || hearth::have_equal_memory(table, *of_a, *of_b));
}

/// Whether what is reserved for some schedules is enough for others.
bool are_within(const Plan& plan, const Plan& reserved) {
  const WorkspaceNeed need = workspace_need(plan.schedules());
  const WorkspaceNeed has = workspace_need(reserved.schedules());
  for (size_t at = 0; at < has.arena_bytes.size(); ++at) {
    if (need.arena_bytes[at] > has.arena_bytes[at]) return false;
    if (need.scratch[at].shared > has.scratch[at].shared ||
        need.scratch[at].per_worker > has.scratch[at].per_worker) {
      return false;
    }
  }
  return need.streams.size() == has.streams.size();
}

}  // namespace

void exchange_experts(ParameterTable& table, const ExpertSwap& swap,
                      const std::function<void(ParameterTable&, BlockId, BlockId)>& exchange) {
  const BlockId a = expert_block(table, swap.layer, swap.comes),
                b = expert_block(table, swap.layer, swap.leaves);
  exchange(table, a, b);
  const auto of_a = table.adapter_of(a), of_b = table.adapter_of(b);
  if (of_a) exchange(table, *of_a, *of_b);
}

ExpertCounts by_layer(const ModelSpec& spec, const std::vector<std::vector<double>>& counts) {
  ExpertCounts all(static_cast<size_t>(spec.layers));
  size_t next = 0;
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (spec.has_experts(layer)) all[static_cast<size_t>(layer)] = counts[next++];
  }
  return all;
}

bool may_move_experts(const PlacedModel& model) {
  return model.plan.train && !model.placement.homes.empty() && chooses_held_experts(model);
}

std::optional<MovedExperts> moved_experts(const PlacedModel& model, const PlanRequest& request,
                                          const ParameterTable& bound, const ExpertCounts& counts) {
  const Place first_device = model.opened->devices.hosts;
  const auto& before = model.placement.homes;
  MovedExperts moved{swaps_to_hotter(before, counts, first_device),
                     share_at_devices(before, counts, first_device),
                     0,
                     model.placement,
                     {}};
  std::erase_if(moved.swaps,
                [&](const ExpertSwap& swap) { return !have_equal_memory(bound, swap); });
  if (moved.swaps.empty()) return std::nullopt;
  auto& homes = moved.placement.homes;
  for (const ExpertSwap& swap : moved.swaps) {
    std::vector<Place>& of = homes[static_cast<size_t>(swap.layer)];
    std::swap(of[static_cast<size_t>(swap.comes)], of[static_cast<size_t>(swap.leaves)]);
  }
  moved.share = share_at_devices(homes, counts, first_device);
  moved.plan =
      plan_with(subject_of(model), moved.placement, request.scheduled_as(*model.plan.train)).plan;
  if (!are_within(moved.plan, model.plan)) return std::nullopt;
  return moved;
}

void take_moved(PlacedModel& model, MovedExperts&& moved) {
  const auto change_places = [](ParameterTable& table, BlockId a, BlockId b) {
    const Place of_a = table.block(a).place;
    table.set_place(a, table.block(b).place);
    table.set_place(b, of_a);
  };
  for (const ExpertSwap& swap : moved.swaps) exchange_experts(model.table, swap, change_places);
  model.placement = std::move(moved.placement);
  model.plan.train = std::move(moved.plan.train);
  model.plan.drain = std::move(moved.plan.drain);
  model.plan.eval = std::move(moved.plan.eval);
  model.plan.decode = std::move(moved.plan.decode);
}

}  // namespace hearth
