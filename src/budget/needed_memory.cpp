#include "budget/needed_memory.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "budget/shortage.h"
#include "budget/stage_room.h"

namespace hearth {

namespace {

constexpr int kMostRaises = 128;  // by 1/64 each: to seven times the memory
constexpr int kMostSearches = 8;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

bool fits_with(PlanSubject& subject, const PlanRequest& request, size_t at, uint64_t bytes) {
  subject.places[at].budget.bytes = bytes;
  return may_fit(subject, request) && plan_placement(subject, request).plan.fits();
}

uint64_t three_percent_less(uint64_t bytes) { return bytes / 100 * 97; }

/// A budget of a place with which the request fits, and with 3 % less does not; the others are as
/// they are. It does not fit with `least`, and fits with `most`. Weights that travel take what is
/// left, so between budgets that fit, some may not.
uint64_t least_between(PlanSubject& subject, const PlanRequest& request, size_t at, uint64_t least,
                       uint64_t most) {
  for (int i = 0; i < kMostSearches; ++i) {
    while (most - least > std::max<uint64_t>(most / 256, 256)) {
      const uint64_t middle = least + (most - least) / 2;
      (fits_with(subject, request, at, middle) ? most : least) = middle;
    }
    if (!fits_with(subject, request, at, three_percent_less(most))) break;
    most = three_percent_less(most);
    least = 0;
  }
  return most;
}

/// The least budget of a place with which the request fits, the others being as they are. `most`:
/// what the place takes without a limit.
uint64_t least_budget(PlanSubject subject, const PlanRequest& request, size_t at, uint64_t most) {
  uint64_t least = 0;
  // A limit changes which cuts are tried, so the cut that was found without one may not be.
  for (int i = 0; i < kMostRaises && !fits_with(subject, request, at, most); ++i) {
    least = most;
    most += most / 64 + 1;
  }
  return least_between(subject, request, at, least, most);
}

/// Looks for the least budgets of several stages.
class NeededMemory {
 public:
  /// `request` is planned with groups of one, which need least.
  NeededMemory(PlanSubject subject, const PlanRequest& request)
      : given_(std::move(subject)),
        request_(request),
        now_(plan_placement(given_, request_).plan) {}

  std::vector<uint64_t> find() const {
    const std::optional<std::vector<uint64_t>> alone = of_one_device();
    std::vector<uint64_t> needed = alone ? *alone : of_all();
    if (shortage(now_) >= raise(needed)) return needed;
    return of_this_cut().value_or(std::move(needed));
  }

 private:
  std::vector<uint64_t> budgets() const {
    std::vector<uint64_t> bytes;
    for (const PlaceLines& place : now_.places) bytes.push_back(place.budget.bytes);
    return bytes;
  }

  uint64_t raise(const std::vector<uint64_t>& needed) const {
    uint64_t bytes = 0;
    for (size_t at = 0; at < needed.size(); ++at) {
      bytes += needed[at] - std::min(needed[at], now_.places[at].budget.bytes);
    }
    return bytes;
  }

  /// The plan if nothing limits a place.
  Plan with_any(PlanSubject subject, size_t at) const {
    subject.places[at].budget.bytes = kAny;
    return plan_placement(subject, request_).plan;
  }

  /// If the first device that alone makes the plan fit is raised.
  std::optional<std::vector<uint64_t>> of_one_device() const {
    for (const Place device : given_.of_model.dense) {
      const auto at = static_cast<size_t>(device);
      if (now_.places[at].fits()) continue;
      const Plan alone = with_any(given_, at);
      if (!alone.fits()) continue;
      std::vector<uint64_t> needed = budgets();
      needed[at] = least_budget(given_, request_, at, alone.places[at].peak);
      return needed;
    }
    return std::nullopt;
  }

  bool fits(const PlanSubject& subject) const {
    return may_fit(subject, request_) && plan_placement(subject, request_).plan.fits();
  }

  /// If the places that are short are raised to what they lack in the plan that was found. Nullopt if
  /// that plan is not found again.
  std::optional<std::vector<uint64_t>> of_this_cut() const {
    PlanSubject raised = given_;
    std::vector<uint64_t> needed;
    for (size_t at = 0; at < now_.places.size(); ++at) {
      needed.push_back(std::max(now_.places[at].peak, now_.places[at].budget.bytes));
      raised.places[at].budget.bytes = needed[at];
    }
    if (!fits(raised)) return std::nullopt;
    for (size_t at = needed.size(); at-- > 1;) {
      if (now_.places[at].fits()) continue;
      raised.places[at].budget.bytes = three_percent_less(needed[at]);
      if (fits(raised)) needed[at] = least_budget(raised, request_, at, needed[at]);
      raised.places[at].budget.bytes = needed[at];
    }
    return needed;
  }

  /// If every place that is short is raised, the last as little as can be.
  std::vector<uint64_t> of_all() const {
    PlanSubject least = given_;
    std::vector<uint64_t> needed = budgets();
    for (size_t at = 0; at < needed.size(); ++at) {
      if (!now_.places[at].fits()) least.places[at].budget.bytes = kAny;
    }
    for (size_t at = needed.size(); at-- > 0;) {  // the host last: devices may be its memory
      if (now_.places[at].fits()) continue;
      const uint64_t most = with_any(least, at).places[at].peak;
      needed[at] = at == kHostPlace ? most : least_budget(least, request_, at, most);
      least.places[at].budget.bytes = needed[at];
    }
    // With these budgets another cut may be found, which needs more elsewhere.
    for (int i = 0; i < kMostRaises; ++i) {
      const Plan then = plan_placement(least, request_).plan;
      if (then.fits()) break;
      for (size_t at = 0; at < needed.size(); ++at) {
        if (then.places[at].fits()) continue;
        needed[at] = least.places[at].budget.bytes = then.places[at].peak;
      }
    }
    return needed;
  }

  PlanSubject given_;
  const PlanRequest& request_;
  Plan now_;
};

}  // namespace

std::vector<uint64_t> needed_memory(const PlanSubject& subject, const PlanRequest& request) {
  PlanSubject least = at_another_start(subject);
  std::vector<uint64_t> needed;
  if (subject.of_model.dense.size() == 1) {
    for (ComputePlace& of : least.places) of.budget.bytes = 0;
    for (const PlaceLines& place : plan_placement(least, request).plan.places) {
      needed.push_back(place.peak);
    }
    const auto device = static_cast<size_t>(subject.of_model.dense.front());
    if (device == kHostPlace) return needed;
    for (size_t at = 0; at < needed.size(); ++at) {
      least.places[at].budget.bytes = std::max(needed[at], subject.places[at].budget.bytes);
    }
    // The plan of a device that has nothing may differ from those that fit.
    const uint64_t less = three_percent_less(needed[device]);
    if (fits_with(least, request, device, less)) {
      needed[device] = least_between(least, request, device, 0, less);
    }
    return needed;
  }
  PlanRequest small = request;
  if (request.training && !request.group) small.group = 1;
  return NeededMemory(std::move(least), small).find();
}

}  // namespace hearth
