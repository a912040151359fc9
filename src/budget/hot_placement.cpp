#include "budget/hot_placement.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "budget/shortage.h"

namespace hearth {

namespace {

constexpr int kMostFillings = 16;

/// The least and the most bytes that an expert's parameters have, with its adapter.
std::pair<uint64_t, uint64_t> expert_bytes(const PlanSubject& subject, const CopyPolicy& policy) {
  std::vector<uint64_t> bytes(subject.table.blocks().size());
  for (BlockId id = 0; id < std::ssize(subject.table.blocks()); ++id) {
    const Block& block = subject.table.block(id);
    const BlockId base = block.kind == BlockKind::adapter ? block.base : id;
    if (subject.table.block(base).kind != BlockKind::expert) continue;
    for (TensorId t = block.begin; t < block.end; ++t) {
      bytes[static_cast<size_t>(base)] += parameter_bytes(subject.table, t, policy);
    }
  }
  uint64_t least = std::numeric_limits<uint64_t>::max(), most = 1;
  for (const uint64_t of_expert : bytes) {
    if (of_expert == 0) continue;  // no expert
    least = std::min(least, of_expert);
    most = std::max(most, of_expert);
  }
  return {least, most};
}

/// Fills the devices one after the other. Experts of one device change what other places need by a
/// little, such as a row that waits elsewhere in the schedule. So a filling counts only if no place
/// lacks more than before.
class Filling {
 public:
  Filling(const PlanSubject& subject, const PlanRequest& request, PlacementPlan plan)
      : subject_(subject), request_(request), plan_(std::move(plan)) {
    if (plan_.plan.train) request_ = request.scheduled_as(*plan_.plan.train);
    std::tie(least_, each_) = expert_bytes(subject, plan_.plan.policy);
  }

  /// The number is estimated, as each expert takes its parameters at least; what a device needs beside
  /// them is known from a plan only. Estimates that are too large twice in a row are bisected.
  void fill(const Stage& stage) {
    const std::vector<LayerExpert> hot = hottest_first(subject_.spec, stage, subject_.popularity);
    const auto at = static_cast<size_t>(stage.place);
    if (!plan_.plan.places[at].fits()) return;
    size_t fits = 0, too_many = hot.size() + 1;
    size_t next = std::min(hot.size(), static_cast<size_t>(room(plan_.plan.places[at]) / each_));
    for (int i = 0; i < kMostFillings && next > fits; ++i) {
      PlacementPlan plan = with(stage, std::span(hot).first(next));
      const PlaceLines& place = plan.plan.places[at];
      if (place.fits() && shortage(plan.plan) <= shortage(plan_.plan)) {
        fits = next;
        plan_ = std::move(plan);
        const uint64_t left = room(plan_.plan.places[at]);
        if (left < least_) return;
        const auto more = static_cast<size_t>(left / each_);
        next = more > 0 ? std::min(fits + more, too_many - 1) : (fits + too_many) / 2;
      } else {
        too_many = next;
        const uint64_t lacking = place.peak - std::min(place.peak, place.budget.bytes);
        const auto over = static_cast<size_t>(lacking / each_ + 1);
        const size_t middle = (fits + too_many) / 2;
        next = lacking > 0 && i % 2 == 0 && over < too_many - fits ? too_many - over : middle;
      }
    }
  }

  const std::vector<Stage>& stages() const { return plan_.placement.stages; }
  PlacementPlan take() { return std::move(plan_); }

 private:
  static uint64_t room(const PlaceLines& at) {
    return at.budget.bytes - std::min(at.budget.bytes, at.peak);
  }
  PlacementPlan with(const Stage& stage, std::span<const LayerExpert> hot) const {
    Placement placement = plan_.placement;
    placement.homes = homes_of(subject_.spec, placement);
    for (const LayerExpert& of : hot) {
      placement.homes[static_cast<size_t>(of.layer)][static_cast<size_t>(of.expert)] = stage.place;
    }
    return plan_with(subject_, placement, request_);
  }

  const PlanSubject& subject_;
  PlanRequest request_;
  PlacementPlan plan_;
  uint64_t least_ = 0, each_ = 0;  // bytes of the smallest and of the largest expert
};

}  // namespace

PlacementPlan with_hot_experts(const PlanSubject& subject, const PlanRequest& request,
                               PlacementPlan plan) {
  Filling filling(subject, request, std::move(plan));
  const std::vector<Stage> stages = filling.stages();
  for (const Stage& stage : stages) filling.fill(stage);
  return filling.take();
}

}  // namespace hearth
