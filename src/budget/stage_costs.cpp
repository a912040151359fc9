#include "budget/stage_costs.h"

#include <algorithm>
#include <map>

#include "budget/schedule_memory.h"
#include "modes/stage_cut.h"
#include "plan/loader/slot_layout.h"
#include "plan/task_costs.h"

namespace hearth {

namespace {

bool has(std::span<const Phase> phases, Phase phase) {
  return std::ranges::find(phases, phase) != phases.end();
}

/// Seconds of a micro-batch in a layer by the cost table of a place.
double table_seconds(const PlanInput& input, int32_t layer, const BatchWork& batch,
                     const PlaceCosts& costs, std::span<const Phase> phases) {
  const auto layers = static_cast<int32_t>(input.spec.layers);
  double sum = 0;
  const auto add = [&](TaskKind kind, Phase phase) {
    Task task;
    task.kind = kind;
    task.phase = phase;
    task.layer = std::clamp(layer, 0, layers);
    const CostEntry* entry = cost_entry(costs, task, input.spec);
    if (entry) sum += predicted_seconds(*entry, task, batch, input.spec, input.table);
  };
  if (layer == layers) {
    if (has(phases, Phase::forward)) add(TaskKind::head, Phase::forward);
    return sum;
  }
  for (const Phase phase : phases) {
    if (layer < 0) {
      if (phase != Phase::recompute) add(TaskKind::embed, phase);
      continue;
    }
    add(TaskKind::attention, phase);
    const bool moe = input.spec.has_experts(layer);
    if (!moe || input.spec.has_shared_expert(layer)) add(TaskKind::mlp, phase);
    if (!moe) continue;
    add(TaskKind::dispatch, phase);
    add(TaskKind::experts, phase);
    if (phase != Phase::backward) add(TaskKind::combine, phase);  // no ranks share the experts here
  }
  return sum;
}

double operations(const PlanInput& input, int32_t layer, const BatchWork& batch,
                  std::span<const Phase> phases) {
  const StageTime flops = layer_flops(input, layer, batch);
  const bool is_head = layer == input.spec.layers;
  double sum = 0;
  for (const Phase phase : phases) {
    if (is_head && phase != Phase::forward) continue;
    sum += phase == Phase::backward ? flops.backward : flops.forward;
  }
  return sum;
}

}  // namespace

std::vector<std::vector<double>> unit_seconds(const PlanSubject& subject,
                                              const PlanRequest& request,
                                              std::span<const Place> places,
                                              std::span<const Phase> phases) {
  const int64_t tokens = std::max({request.tokens, request.eval_tokens, request.decode_tokens});
  const PlanInput input{subject.spec, subject.settings, subject.table, {}, tokens, request.longest};
  const BatchWork batch = full_batch(tokens, std::max<int64_t>(1, request.longest));
  const bool tables = std::ranges::all_of(
      places, [&](Place at) { return subject.places[static_cast<size_t>(at)].costs != nullptr; });
  std::vector<std::vector<double>> seconds;
  for (const Place at : places) {
    const ComputePlace& place = subject.places[static_cast<size_t>(at)];
    const PlaceCosts costs{place.costs, workers_of(place), subject.settings.compute};
    std::vector<double>& of_place = seconds.emplace_back();
    for (int32_t layer = -1; layer <= subject.spec.layers; ++layer) {
      of_place.push_back(tables ? table_seconds(input, layer, batch, costs, phases)
                                : operations(input, layer, batch, phases));
    }
  }
  return seconds;
}

std::vector<uint64_t> unit_slot_bytes(const ParameterTable& table, const CopyPolicy& policy,
                                      bool gradients) {
  int32_t layers = 0;
  for (const Block& block : table.blocks()) layers = std::max(layers, block.layer + 1);
  std::vector<uint64_t> bytes(static_cast<size_t>(layers) + 2);
  for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
    const Block& block = table.block(b);
    const Block& base = block.kind == BlockKind::adapter ? table.block(block.base) : block;
    const size_t unit = base.kind == BlockKind::embedding ? 0
                        : base.kind == BlockKind::head    ? bytes.size() - 1
                                                          : static_cast<size_t>(base.layer + 1);
    bytes[unit] += slot_layout(table, b, Cargo::weights, policy).slot_bytes();
    if (gradients) bytes[unit] += slot_layout(table, b, Cargo::gradient, policy).slot_bytes();
  }
  return bytes;
}

uint64_t slot_bytes_at(const Plan& plan, Place place) {
  uint64_t bytes = 0;
  if (static_cast<size_t>(place) >= plan.slots.size()) return bytes;
  for (const SlotClass& of : plan.slots[static_cast<size_t>(place)]) {
    bytes += of.bytes * static_cast<uint64_t>(of.slots);
  }
  return bytes;
}

bool two_stages_fit(const Plan& plan, std::span<const Stage> stages,
                    std::span<const uint64_t> units) {
  std::map<Place, uint64_t> largest;
  for (const Stage& stage : stages) {
    uint64_t bytes = 0;
    for (int32_t layer = stage.first; layer <= stage.last; ++layer) {
      bytes += units[static_cast<size_t>(layer + 1)];
    }
    uint64_t& most = largest[stage.place];
    most = std::max(most, bytes);
  }
  return std::ranges::all_of(
      largest, [&](const auto& of) { return 2 * of.second <= slot_bytes_at(plan, of.first); });
}

}  // namespace hearth
