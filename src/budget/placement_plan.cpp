#include "budget/placement_plan.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/setting.h"
#include "budget/hot_placement.h"
#include "budget/interleave.h"
#include "budget/round_robin.h"
#include "budget/schedule_memory.h"
#include "budget/shortage.h"
#include "budget/stage_costs.h"
#include "budget/stage_room.h"
#include "modes/stage_cut.h"

namespace hearth {

namespace {

constexpr int kMostTries = 8, kFewTries = 2;

/// Looks for a cut whose plan fits, each try with what the plan before showed of activations.
class StageSearch {
 public:
  StageSearch(const PlanSubject& subject, const PlanRequest& request)
      : subject_(subject), places_(subject.of_model), request_(request) {
    cut_.devices = places_.dense;
    seconds_ = unit_seconds(subject, request, places_.dense, kForwardAndBackward);
    cut_.bytes = unit_bytes(subject, request.training);
    room_ = stage_room(subject);
  }

  /// `few`: tries only some cuts, where another number of stages is there to fall back to.
  PlacementPlan run(std::optional<bool> recompute, bool few = false) {
    PlanRequest request = request_;
    request.recompute = recompute;
    cut_.seconds = seconds_;
    std::optional<PlacementPlan> best;
    // What a device has besides parameters is taken to grow with its units, which is true of saved
    // activations; then not to, which is true of scratch; then cuts fill the devices evenly.
    for (const auto& [grows, evenly] :
         {std::pair(true, false), std::pair(false, false), std::pair(false, true)}) {
      cut_.unit_bytes.assign(places_.dense.size(), 0);
      cut_.room = room_;
      if (evenly) count_bytes_as_time();
      std::vector<Placement> tried;
      for (int i = 0; i < (few ? kFewTries : kMostTries); ++i) {
        Placement placement(stages(), places_.experts);
        placement.travels = places_.travel != Travel::never;
        if (std::find(tried.begin(), tried.end(), placement) != tried.end()) break;
        tried.push_back(placement);
        PlacementPlan next = plan_with(subject_, placement, request);
        learn_from(next, grows);
        if (!best || shortage(next.plan) < shortage(best->plan)) best = std::move(next);
        if (best->plan.fits() || all_are_short(best->plan)) return std::move(*best);
      }
      if (few) return std::move(*best);
    }
    while (!best->plan.fits()) {
      std::optional<PlacementPlan> better = one_unit_further(*best, request);
      if (!better) break;
      best = std::move(better);
    }
    return std::move(*best);
  }

 private:
  std::vector<Stage> stages() const {
    if (auto cut = cut_stages(cut_)) return *cut;
    throw usage_error("{}: {} devices for {} layers, the embedding and the head; name at most {}",
                      spelled(Setting::devices), cut_.devices.size(), subject_.spec.layers,
                      cut_.bytes.size());
  }

  uint64_t stages_at(Place device) const {
    return static_cast<uint64_t>(std::ranges::count(places_.dense, device));
  }

  /// Then no other cut fits: it only moves what they lack from one to the other.
  bool all_are_short(const Plan& plan) const {
    return std::ranges::all_of(places_.dense, [&](Place device) {
      return !plan.places[static_cast<size_t>(device)].fits();
    });
  }

  /// The best plan that lacks less memory, of those that move one unit from a device that is short to
  /// the one before or behind it: what was learned of one cut may be too pessimistic about another.
  std::optional<PlacementPlan> one_unit_further(const PlacementPlan& from,
                                                const PlanRequest& request) const {
    std::optional<PlacementPlan> best;
    const std::vector<Stage>& now = from.placement.stages;
    const auto attempt = [&](size_t giver, size_t taker) {
      const bool is_short = !from.plan.places[static_cast<size_t>(now[giver].place)].fits();
      if (!is_short || now[giver].first == now[giver].last) return;
      Placement next = from.placement;
      Stage &gives = next.stages[giver], &takes = next.stages[taker];
      if (taker > giver) {
        takes.first = gives.last--;
      } else {
        takes.last = gives.first++;
      }
      PlacementPlan plan = plan_with(subject_, next, request);
      if (shortage(plan.plan) < shortage(best ? best->plan : from.plan)) best = std::move(plan);
    };
    for (size_t s = 0; s + 1 < now.size(); ++s) {
      attempt(s, s + 1);
      attempt(s + 1, s);
    }
    return best;
  }

  /// So that no device is fuller than it must be.
  void count_bytes_as_time() {
    for (size_t d = 0; d < cut_.devices.size(); ++d) {
      for (size_t unit = 0; unit < cut_.bytes.size(); ++unit) {
        cut_.seconds[d][unit] =
            static_cast<double>(cut_.bytes[unit]) / (static_cast<double>(room_[d]) + 1);
      }
    }
  }

  /// `grows`: what a device has besides parameters counts for each of its units; else once.
  void learn_from(const PlacementPlan& plan, bool grows) {
    for (size_t d = 0; d < cut_.devices.size(); ++d) {
      const Place device = cut_.devices[d];
      uint64_t parameters = 0, units = 0;
      for (const Stage& stage : plan.placement.stages) {
        if (stage.place != device) continue;
        for (int32_t layer = stage.first; layer <= stage.last; ++layer) {
          parameters += cut_.bytes[static_cast<size_t>(layer + 1)];
          units += 1;
        }
      }
      const uint64_t peak = plan.plan.places[static_cast<size_t>(device)].peak;
      const uint64_t besides = peak - std::min(peak, parameters);
      if (grows) {
        cut_.unit_bytes[d] = besides / units;
      } else {
        cut_.room[d] = room_[d] - std::min(room_[d], besides / stages_at(device));
      }
    }
  }

  const PlanSubject& subject_;
  const ModelPlaces& places_;
  const PlanRequest& request_;
  StageCutInput cut_;
  std::vector<std::vector<double>> seconds_;  // StageCutInput::seconds, by time
  std::vector<uint64_t> room_;                // of each device
};

/// The stages of a given cut; none if it is not one of these layers for these devices.
std::optional<std::vector<Stage>> stages_of_cut(const PlanSubject& subject,
                                                const std::vector<int32_t>& ends) {
  const std::vector<Place>& devices = subject.of_model.dense;
  if (ends.size() + 1 < devices.size()) return std::nullopt;
  return forward_stages(devices, static_cast<int32_t>(subject.spec.layers), ends);
}

}  // namespace

/// Where a plan expects the experts to be computed whose splits are decided later.
static std::vector<std::vector<Place>> expected_places(const PlanSubject& subject,
                                                       const Placement& placement) {
  std::vector<std::vector<Place>> places(subject.expected.size());
  for (size_t layer = 0; layer < places.size(); ++layer) {
    const Place device = placement.dense(static_cast<int32_t>(layer));
    for (const uint8_t there : subject.expected[layer]) {
      places[layer].push_back(there != 0 ? device : kHostPlace);
    }
  }
  return places;
}

PlanSubject at_another_start(PlanSubject subject) {
  subject.process.program += uint64_t{2} << 20;
  return subject;
}

PlacementPlan plan_with(const PlanSubject& subject, const Placement& placement,
                        const PlanRequest& request) {
  PlacementPlan result{placement, subject.table, {}};
  if (subject.of_model.decides() && !subject.expected.empty()) {
    result.placement.homes = expected_places(subject, placement);
  }
  place_blocks(result.table, subject.spec, result.placement);
  PlanSubject placed = subject.with_table(result.table);
  if (placement.travels) {
    for (BlockId b = 0; b < std::ssize(result.table.blocks()); ++b) {
      placed.compute.push_back(result.table.block(b).place);
      result.table.set_place(b, kHostPlace);
    }
  }
  placed.compute_backward = backward_places(result.table, subject.spec, placement);
  result.plan = make_plan(placed, request);
  return result;
}

/// Whether every device has slots for two of its stages: the one that runs and the next.
static bool two_stages_fit(const PlacementPlan& plan, bool training) {
  const std::vector<uint64_t> units = unit_slot_bytes(plan.table, plan.plan.policy, training);
  return two_stages_fit(plan.plan, plan.placement.stages, units);
}

static PlacementPlan search_interleaved(const PlanSubject& subject, const PlanRequest& request,
                                        int32_t stages_each, bool few) {
  PlanSubject staged = subject;
  staged.of_model.dense = interleaved(subject.of_model.dense, stages_each);
  return StageSearch(staged, request).run(request.recompute, few);
}

/// Weights travel, so a device may have any number of stages, which it computes one after the other:
/// as few as let two of them be in its slots, so that each is loaded once a direction. If none do, as
/// many as there are. More, if devices then wait less for each other.
static PlacementPlan staged_plan(const PlanSubject& subject, const PlanRequest& request) {
  const auto devices = std::ssize(subject.of_model.dense);
  std::optional<PlacementPlan> best;
  int32_t each = 1;
  bool enough = false;
  for (; !enough && (each == 1 || each * devices <= subject.spec.layers + 2); ++each) {
    PlacementPlan next = search_interleaved(subject, request, each, false);
    if (!best || next.plan.fits() || !best->plan.fits()) best = std::move(next);
    enough = best->plan.fits() && two_stages_fit(*best, request.training);
  }
  if (!enough || !best->plan.train) return std::move(*best);
  const int64_t group = best->plan.train->group;
  for (const int32_t more : interleavings(subject, request, each - 1, group)) {
    PlacementPlan next = search_interleaved(subject, request, more, true);
    const bool as_good = next.plan.fits() && two_stages_fit(next, request.training) &&
                         next.plan.train->group >= group;
    if (as_good) return next;
  }
  return std::move(*best);
}

/// With the experts at the places that the subject names for them.
static PlacementPlan cut_and_plan(const PlanSubject& subject, const PlanRequest& request) {
  const ModelPlaces& places = subject.of_model;
  if (places.round_robin && places.dense.size() > 1) return round_robin_plan(subject, request);
  if (places.dense.size() == 1) {
    Placement placement({{.place = places.dense.front()}}, places.experts);
    placement.travels = places.travel != Travel::never;
    return plan_with(subject, placement, request);
  }
  if (auto stages = stages_of_cut(subject, request.stage_ends)) {
    Placement placement(std::move(*stages), places.experts);
    placement.travels = places.travel != Travel::never;
    return plan_with(subject, placement, request);
  }
  if (places.travel != Travel::never) return staged_plan(subject, request);
  StageSearch search(subject, request);
  if (request.recompute || !request.training) return search.run(request.recompute);
  PlacementPlan kept = search.run(false);
  const bool all_overlap =
      kept.plan.train->group >= std::min<int64_t>(std::ssize(places.dense), request.micro_batches);
  if (kept.plan.fits() && all_overlap) return kept;
  PlacementPlan again = search.run(true);
  if (!kept.plan.fits()) return again;
  // A small group leaves devices idle; recompute may cost less.
  const bool faster = again.plan.fits() && again.plan.train->span < kept.plan.train->span;
  return faster ? std::move(again) : std::move(kept);
}

static PlacementPlan filled_plan(const PlanSubject& subject, const PlanRequest& request,
                                 PlacementPlan plan) {
  return subject.of_model.hot ? with_hot_experts(subject, request, std::move(plan))
                              : std::move(plan);
}

/// With so many stages on each device. Nullopt if the devices cannot hold all of their stages, with
/// their experts and the activations of all micro-batches.
static std::optional<PlacementPlan> interleaved_plan(const PlanSubject& subject,
                                                     const PlanRequest& request,
                                                     int32_t stages_each) {
  PlanRequest kept = request;
  kept.recompute = request.recompute.value_or(false);
  PlacementPlan plan = search_interleaved(subject, kept, stages_each, true);
  if (!plan.plan.fits()) return std::nullopt;
  plan = filled_plan(subject, request, std::move(plan));
  const auto at_home = [&](int32_t layer) {
    for (int32_t e = 0; e < subject.spec.experts; ++e) {
      const Place device = plan.placement.dense(layer);
      if (plan.placement.expert(layer, e, subject.spec.experts) != device) return false;
    }
    return true;
  };
  bool holds_all = plan.plan.fits() && plan.plan.train->group == request.micro_batches;
  for (int32_t layer = 0; holds_all && layer < subject.spec.layers; ++layer) {
    holds_all = !subject.spec.has_experts(layer) || at_home(layer);
  }
  if (!holds_all) return std::nullopt;
  return plan;
}

PlacementPlan plan_placement(const PlanSubject& subject, const PlanRequest& request) {
  const ModelPlaces& places = subject.of_model;
  const bool one_group = !request.group || *request.group >= request.micro_batches;
  const bool stay = places.travel == Travel::never && (places.experts.empty() || places.hot);
  if (stay && one_group) {
    for (const int32_t each : interleavings(subject, request, 1, request.micro_batches)) {
      if (auto plan = interleaved_plan(subject, request, each)) return std::move(*plan);
    }
  }
  return filled_plan(subject, request, cut_and_plan(subject, request));
}

}  // namespace hearth
