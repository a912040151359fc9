#include "budget/stage_room.h"

#include <algorithm>
#include <numeric>

#include "budget/interleave.h"
#include "modes/stage_cut.h"

namespace hearth {

std::vector<uint64_t> unit_bytes(const PlanSubject& subject, bool training) {
  std::vector<uint64_t> bytes(static_cast<size_t>(subject.spec.layers) + 2);
  if (subject.of_model.travel != Travel::never) return bytes;
  const CopyPolicy policy{training, subject.settings.compute, DType::f32};
  for (const Block& block : subject.table.blocks()) {
    const Block& base = block.kind == BlockKind::adapter ? subject.table.block(block.base) : block;
    if (base.kind == BlockKind::expert && !subject.of_model.experts.empty()) continue;
    const bool with_head = base.kind == BlockKind::head ||
                           (base.kind == BlockKind::embedding && subject.spec.tied_head);
    const size_t unit = with_head ? bytes.size() - 1 : static_cast<size_t>(base.layer + 1);
    for (TensorId id = block.begin; id < block.end; ++id) {
      bytes[unit] += parameter_bytes(subject.table, id, policy);
    }
  }
  return bytes;
}

std::vector<uint64_t> stage_room(const PlanSubject& subject) {
  const ModelPlaces& places = subject.of_model;
  std::vector<uint64_t> room;
  for (const Place at : places.dense) {
    const uint64_t bytes = subject.places[static_cast<size_t>(at)].budget.bytes;
    const bool shared = places.travel == Travel::never;
    const auto stages = static_cast<uint64_t>(std::ranges::count(places.dense, at));
    room.push_back(shared ? bytes / stages : bytes);
  }
  return room;
}

bool may_fit(const PlanSubject& subject, const PlanRequest& request) {
  StageCutInput input;
  input.devices = subject.of_model.dense;
  input.bytes = unit_bytes(subject, request.training);
  input.room = stage_room(subject);
  const uint64_t bytes = std::accumulate(input.bytes.begin(), input.bytes.end(), uint64_t{0});
  uint64_t left = bytes;
  for (const uint64_t room : input.room) left -= std::min(left, room);
  if (left > 0) return false;
  // Devices with several stages each hold other layers than one stage each would have.
  const bool one_group = !request.group || *request.group >= request.micro_batches;
  if (one_group && !interleavings(subject, request, 1, request.micro_batches).empty()) return true;
  input.unit_bytes.assign(input.devices.size(), 0);
  input.seconds.assign(input.devices.size(), std::vector<double>(input.bytes.size()));
  const auto cut = cut_stages(input);
  if (!cut) return true;  // there are too many devices, which the plan says
  for (size_t s = 0; s < cut->size(); ++s) {
    uint64_t of_stage = 0;
    for (int32_t layer = (*cut)[s].first; layer <= (*cut)[s].last; ++layer) {
      of_stage += input.bytes[static_cast<size_t>(layer + 1)];
    }
    if (of_stage > input.room[s]) return false;
  }
  return true;
}

}  // namespace hearth
