#include "train/decision_journal.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace hearth {

namespace {

int64_t stage_of(const Placement& placement, int32_t layer) {
  const auto& stages = placement.stages;
  const auto found = std::ranges::find_if(
      stages, [&](const Stage& stage) { return stage.first <= layer && layer <= stage.last; });
  return found - stages.begin();
}

/// `width`: of experts.
JsonObject fields_of(int64_t step, const SplitDecision& decision, const Placement& placement,
                     const std::vector<std::string>& names, int64_t width) {
  const std::string& device = names[static_cast<size_t>(decision.device)];
  const size_t experts = decision.tokens.size();
  std::vector<const std::string*> where(experts, nullptr);
  for (const int32_t e : decision.split.device) where[static_cast<size_t>(e)] = &device;
  for (const int32_t e : decision.split.host) where[static_cast<size_t>(e)] = &names[kHostPlace];
  const DividedExpert& divided = decision.split.divided;
  JsonArray tokens, places, reasons;
  for (size_t e = 0; e < experts; ++e) {
    tokens.push_back(static_cast<int64_t>(decision.tokens[e]));
    if (static_cast<int32_t>(e) == divided.expert) {
      places.push_back(
          JsonObject{{names[kHostPlace], width - divided.width}, {device, divided.width}});
    } else {
      places.push_back(where[e] == nullptr ? Json() : Json(*where[e]));
    }
    reasons.push_back(where[e] == nullptr ? Json()
                                          : Json(std::string(name_of(decision.split.reasons[e]))));
  }
  return {{"step", step},
          {"layer", int64_t{decision.layer}},
          {"micro_batch", Json()},
          {"phase", "forward"},
          {"stage", stage_of(placement, decision.layer)},
          {"device", device},
          {"tokens", std::move(tokens)},
          {"where", std::move(places)},
          {"reason", std::move(reasons)}};
}

}  // namespace

void journal_decisions(Journal& journal, int64_t step, std::span<const SplitDecision> decisions,
                       const Placement& placement, const std::vector<std::string>& names,
                       int64_t width, bool full) {
  if (decisions.empty()) return;
  Hasher all;
  for (const SplitDecision& decision : decisions) {
    JsonObject fields = fields_of(step, decision, placement, names, width);
    if (full) {
      journal.event("decision", std::move(fields));
    } else {
      const std::string text = Json(std::move(fields)).dump();
      all.update_field(text);
    }
  }
  if (!full) journal.event("decisions", {{"step", step}, {"digest", all.digest().hex()}});
}

}  // namespace hearth
