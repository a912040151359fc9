#include "budget/interleave.h"

#include <algorithm>
#include <array>

#include "budget/stage_costs.h"
#include "modes/stage_cut.h"

namespace hearth {

namespace {

constexpr double kLeastGain = 0.05;  // of the time of the passes
constexpr int64_t kLeastLayers = 2;  // of a stage
constexpr std::array kForward = {Phase::forward}, kBackward = {Phase::backward};

/// The time of all passes of a step, if each device has so many stages. 0: there is no such cut.
double time_of_passes(const PlanSubject& subject, const PlanRequest& request, int32_t stages_each,
                      int64_t group) {
  const std::vector<Place> devices = interleaved(subject.of_model.dense, stages_each);
  const auto forward = unit_seconds(subject, request, devices, kForward);
  const auto backward = unit_seconds(subject, request, devices, kBackward);
  const size_t units = forward.front().size();
  StageCutInput input;
  input.devices = devices;
  input.seconds = unit_seconds(subject, request, devices, kForwardAndBackward);
  input.bytes.assign(units, 0);
  input.unit_bytes.assign(devices.size(), 0);
  input.room.assign(devices.size(), 0);
  const auto cut = cut_stages(input);
  if (!cut) return 0;
  std::vector<StageTime> times;
  for (size_t s = 0; s < cut->size(); ++s) {
    StageTime& time = times.emplace_back(StageTime{0, 0});
    for (int32_t layer = (*cut)[s].first; layer <= (*cut)[s].last; ++layer) {
      time.forward += forward[s][static_cast<size_t>(layer + 1)];
      time.backward += backward[s][static_cast<size_t>(layer + 1)];
    }
  }
  const auto count = static_cast<int32_t>(request.micro_batches);
  const auto together = static_cast<int32_t>(std::min(group, request.micro_batches));
  double span = 0;
  if (stages_each == 1) {
    pipeline_order(times, count, together, &span);
  } else {
    staged_order(times, devices, count, together, &span);
  }
  return span;
}

}  // namespace

std::vector<Place> interleaved(const std::vector<Place>& devices, int32_t stages_each) {
  std::vector<Place> all;
  for (int32_t i = 0; i < stages_each; ++i) all.insert(all.end(), devices.begin(), devices.end());
  return all;
}

std::vector<int32_t> interleavings(const PlanSubject& subject, const PlanRequest& request,
                                   int32_t fewest, int64_t group) {
  std::vector<int32_t> better;
  const auto devices = std::ssize(subject.of_model.dense);
  if (!request.training || devices < 2 || !request.stage_ends.empty()) return better;
  double shortest = time_of_passes(subject, request, fewest, group);
  for (int32_t each = 2 * fewest; each * devices * kLeastLayers <= subject.spec.layers; each *= 2) {
    const double time = time_of_passes(subject, request, each, group);
    if (time <= 0 || time > (1 - kLeastGain) * shortest) break;
    shortest = time;
    better.insert(better.begin(), each);
  }
  return better;
}

}  // namespace hearth
