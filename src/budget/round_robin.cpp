#include "budget/round_robin.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error_format.h"
#include "base/setting.h"
#include "budget/shortage.h"
#include "budget/stage_costs.h"
#include "modes/pipeline.h"
#include "modes/stage_cut.h"

namespace hearth {

namespace {

constexpr int kMostPlans = 4;
constexpr std::array<Phase, 1> kForward = {Phase::forward};
constexpr std::array<Phase, 2> kBackward = {Phase::recompute, Phase::backward};

/// Searches the cuts of one direction. Units in the order of the direction.
class DirectionCuts {
 public:
  DirectionCuts(std::vector<std::vector<double>> seconds, std::vector<uint64_t> slots,
                std::span<const Place> devices, bool backward)
      : seconds_(std::move(seconds)),
        slots_(std::move(slots)),
        devices_(devices),
        backward_(backward),
        layers_(static_cast<int32_t>(slots_.size()) - 2) {
    if (!backward_) return;
    slots_.pop_back();
    std::ranges::reverse(slots_);
    for (std::vector<double>& of_place : seconds_) {
      of_place.pop_back();
      std::ranges::reverse(of_place);
    }
  }

  int32_t units() const { return static_cast<int32_t>(slots_.size()); }

  /// The cut into so many stages whose slowest is fastest; the first is on device `offset` mod P.
  std::vector<Stage> cut(int32_t stages, size_t offset) const {
    StageCutInput input;
    const auto count = static_cast<size_t>(stages);
    input.bytes.resize(slots_.size());
    input.unit_bytes.resize(count);
    input.room.resize(count, std::numeric_limits<uint64_t>::max());
    for (size_t s = 0; s < count; ++s) {
      const size_t at = (offset + s) % devices_.size();
      input.devices.push_back(devices_[at]);
      input.seconds.push_back(seconds_[at]);
    }
    std::vector<Stage> found = cut_stages(input).value();
    if (!backward_) return found;
    for (Stage& stage : found) {  // units from the last layer down to the embedding
      const int32_t first = layers_ - 2 - stage.last, last = layers_ - 2 - stage.first;
      stage = {stage.place, first, last};
    }
    return found;
  }

  double time(const Stage& stage) const {
    const auto device =
        static_cast<size_t>(std::ranges::find(devices_, stage.place) - devices_.begin());
    double sum = 0;
    for (int32_t layer = stage.first; layer <= stage.last; ++layer) {
      sum += seconds_[device][static_cast<size_t>(backward_ ? layers_ - 1 - layer : layer + 1)];
    }
    return sum;
  }

 private:
  std::vector<std::vector<double>> seconds_;  // [device][unit]
  std::vector<uint64_t> slots_;               // [unit]
  std::span<const Place> devices_;
  const bool backward_;
  const int32_t layers_;
};

std::vector<Round> chain_of(const DirectionCuts& forward, const std::vector<Stage>& stages,
                            const DirectionCuts& backward, const std::vector<Stage>& back) {
  std::vector<Round> chain;
  for (size_t s = 0; s < stages.size(); ++s) {
    chain.push_back({static_cast<int32_t>(s), false, stages[s].place, forward.time(stages[s])});
  }
  for (size_t s = 0; s < back.size(); ++s) {
    chain.push_back({static_cast<int32_t>(s), true, back[s].place, backward.time(back[s])});
  }
  return chain;
}

class RoundRobinSearch {
 public:
  RoundRobinSearch(const PlanSubject& subject, const PlanRequest& request,
                   std::span<const Place> devices)
      : subject_(subject),
        request_(request),
        devices_(devices),
        weights_(unit_slot_bytes(subject.table, policy_of(subject, request), false)),
        all_(unit_slot_bytes(subject.table, policy_of(subject, request), true)),
        forward_(unit_seconds(subject, request, devices, kForward), weights_, devices, false),
        backward_(unit_seconds(subject, request, devices, kBackward), all_, devices, true) {}

  PlacementPlan run() const {
    const auto least = static_cast<int32_t>(devices_.size());
    if (least > backward_.units()) {
      throw usage_error("{}: {} devices for {} layers and the embedding; name at most {}",
                        spelled(Setting::devices), devices_.size(), subject_.spec.layers,
                        backward_.units());
    }
    Placement placement = placed(forward_.cut(least, 0), backward_.cut(least, devices_.size()));
    std::vector<Placement> tried;
    std::optional<PlacementPlan> best;
    for (int i = 0; i < kMostPlans; ++i) {
      if (std::ranges::find(tried, placement) != tried.end()) break;
      tried.push_back(placement);
      PlacementPlan next = plan_with(subject_, placement, request_);
      placement = fastest(next.plan);
      if (!best || shortage(next.plan) <= shortage(best->plan)) best = std::move(next);
    }
    return std::move(*best);
  }

 private:
  static CopyPolicy policy_of(const PlanSubject& subject, const PlanRequest& request) {
    return {request.training, subject.settings.compute, DType::f32};
  }

  Placement placed(std::vector<Stage> forward, std::vector<Stage> backward) const {
    Placement placement(std::move(forward), {});
    placement.backward = std::move(backward);
    placement.travels = true;
    return placement;
  }

  /// The fewest stages of a direction two of which fit in the slots of each device.
  int32_t fewest(const Plan& plan, const DirectionCuts& direction,
                 std::span<const uint64_t> bytes) const {
    for (int32_t stages = static_cast<int32_t>(devices_.size()); stages < direction.units();
         ++stages) {
      if (two_stages_fit(plan, direction.cut(stages, 0), bytes)) return stages;
    }
    return direction.units();
  }

  /// Stages of about equal time in both directions leave devices idle least, so more stages of a
  /// direction than memory asks for may be faster.
  Placement fastest(const Plan& plan) const {
    const int32_t forward = fewest(plan, forward_, weights_), back = fewest(plan, backward_, all_);
    const auto devices = static_cast<int32_t>(devices_.size());
    const auto micro_batches = static_cast<int32_t>(request_.micro_batches);
    std::optional<Placement> best;
    double shortest = 0;
    for (int32_t b = back; b <= std::min(back + 2 * devices, backward_.units()); ++b) {
      for (int32_t f = forward; f <= std::min(forward + 2 * devices, forward_.units()); ++f) {
        Placement next = placed(forward_.cut(f, 0), backward_.cut(b, static_cast<size_t>(f)));
        double span = 0;
        rounds_order(chain_of(forward_, next.stages, backward_, next.backward), micro_batches,
                     micro_batches, &span);
        if (best && span >= shortest) continue;
        shortest = span;
        best = std::move(next);
      }
    }
    return std::move(*best);
  }

  const PlanSubject& subject_;
  const PlanRequest& request_;
  const std::span<const Place> devices_;
  const std::vector<uint64_t> weights_, all_;  // of slots, by unit
  const DirectionCuts forward_, backward_;
};

}  // namespace

std::optional<std::vector<Stage>> forward_stages(std::span<const Place> devices, int32_t layers,
                                                 std::span<const int32_t> ends) {
  std::vector<Stage> stages;
  int32_t first = -1;
  for (size_t s = 0; s <= ends.size(); ++s) {
    const int32_t last = s < ends.size() ? ends[s] : layers;
    if (last < first || (s < ends.size() && last >= layers)) return std::nullopt;
    stages.push_back({devices[s % devices.size()], first, last});
    first = last + 1;
  }
  return stages;
}

std::optional<std::vector<Stage>> backward_stages(std::span<const Place> devices, int32_t layers,
                                                  size_t forward, std::span<const int32_t> ends) {
  std::vector<Stage> stages;
  int32_t last = layers - 1;
  for (size_t s = 0; s <= ends.size(); ++s) {
    const int32_t first = s < ends.size() ? ends[s] : -1;
    if (first > last || (s < ends.size() && first < 0)) return std::nullopt;
    stages.push_back({devices[(forward + s) % devices.size()], first, last});
    last = first - 1;
  }
  return stages;
}

PlacementPlan round_robin_plan(const PlanSubject& subject, const PlanRequest& request) {
  const std::vector<Place>& devices = subject.of_model.dense;
  const auto layers = static_cast<int32_t>(subject.spec.layers);
  PlanRequest again = request;
  if (request.training) again.recompute = true;
  if (!request.stage_ends.empty() || !request.backward_ends.empty()) {
    auto forward = forward_stages(devices, layers, request.stage_ends);
    auto backward =
        backward_stages(devices, layers, request.stage_ends.size() + 1, request.backward_ends);
    if (forward && backward) {
      Placement placement(std::move(*forward), {});
      placement.backward = std::move(*backward);
      placement.travels = true;
      return plan_with(subject, placement, again);
    }
  }
  return RoundRobinSearch(subject, again, devices).run();
}

}  // namespace hearth
