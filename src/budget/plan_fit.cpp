#include "budget/plan_fit.h"

#include "base/counted.h"
#include "base/error_format.h"
#include "base/setting.h"
#include "base/size_text.h"
#include "budget/needed_memory.h"

namespace hearth {

std::vector<size_t> places_to_raise(const Plan& plan, const std::vector<uint64_t>& needed) {
  std::vector<size_t> places, raised;
  for (size_t at = 0; at < plan.places.size(); ++at) {
    if (plan.places[at].fits()) continue;
    places.push_back(at);
    if (at < needed.size() && needed[at] > plan.places[at].budget.bytes) raised.push_back(at);
  }
  return raised.empty() ? places : raised;
}

std::string what_is_missing(const Plan& plan, const std::vector<uint64_t>& needed) {
  std::string text;
  for (const size_t place : places_to_raise(plan, needed)) {
    const PlaceLines& of = plan.places[place];
    text += text.empty() ? "the plan needs " : "; it needs ";
    const bool tell_apart = size_text(of.peak) != size_text(of.budget.bytes);
    const auto size = [&](uint64_t bytes) {
      return tell_apart ? size_text(bytes) : counted(static_cast<int64_t>(bytes), "byte");
    };
    text += size(of.peak) + " of " +
            (place == kHostPlace ? std::string("host memory") : "the memory of " + of.budget.name) +
            ", but may use only " + size(of.budget.bytes);
  }
  return text;
}

std::string options_that_fit(const Plan& plan, const std::vector<uint64_t>& needed) {
  std::vector<RaisedBudget> raised;
  std::string places;
  for (size_t at = 0; at < plan.places.size(); ++at) {
    const PlaceBudget& budget = plan.places[at].budget;
    if (needed[at] <= budget.bytes) continue;
    raised.push_back({budget, size_option(needed[at])});
    places += (places.empty() ? "" : " and ") +
              (at == kHostPlace ? std::string("the machine") : budget.name);
  }
  if (raised.empty()) return {};
  const bool several = places.find(" and ") != std::string::npos;
  return options_that_raise(raised) + ", if " + places + (several ? " have it" : " has it");
}

void require_fit(const PlacedModel& model, const PlanRequest& request) {
  if (model.plan.fits()) return;
  const std::vector<uint64_t> needed = needed_memory(subject_of(model), request);
  const std::string options = options_that_fit(model.plan, needed);
  throw usage_error("{}; a smaller {}, {} or {} needs less{}", what_is_missing(model.plan, needed),
                    spelled(Setting::micro_batch), spelled(Setting::seq_len),
                    spelled(Setting::max_new_tokens),
                    options.empty() ? "" : ", and more memory fits: " + options);
}

}  // namespace hearth
