#include "train/known_tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error_format.h"
#include "base/setting.h"
#include "state/run_identity.h"
#include "train/state_to_resume.h"

namespace hearth {
namespace {

bool is_allowed(const TrainConfig& config, std::string_view option) {
  const std::vector<std::string>& allowed = config.allow_change;
  return std::find(allowed.begin(), allowed.end(), option) != allowed.end();
}

/// Whether the run had other tables given than the options of this start.
bool other_profile(const TrainConfig& config, const Json& extra) {
  const std::string before = identity_in(extra).option("profile").value_or("null");
  const auto now = std::find_if(config.recorded.begin(), config.recorded.end(),
                                [](const TrainConfig::Recorded& r) { return r.name == "profile"; });
  return before != (now != config.recorded.end() ? now->value : "null");
}

void require_same_paces(const TrainConfig& config, const OpenedModel& opened, const Json& record,
                        const std::string& source) {
  const Json* paced = record.is_object() ? record.find("paced") : nullptr;
  if (paced == nullptr || !paced->is_object() || is_allowed(config, "devices")) return;
  for (const ComputePlace& place : opened.devices.places) {
    const Json* was = paced->find(place.budget.name);
    if (!place.costs || was == nullptr || !was->is_string()) continue;
    if (was->as_string() == place.costs->digest().hex()) continue;
    throw input_error(
        "the cost table that paces {} changed since {} was saved; give the old one back, or allow "
        "a "
        "change of {}",
        place.budget.name, source, spelled(Setting::devices));
  }
}

/// The places that compute and have no costs=.
std::vector<std::string> unpaced(const OpenedModel& opened) {
  std::vector<std::string> names;
  for (const Place at : opened.devices.of_model.all()) {
    if (!opened.place(at).costs) names.push_back(opened.place(at).budget.name);
  }
  return names;
}

}  // namespace

RunTables known_tables(const TrainConfig& config, const OpenedModel& opened) {
  RunTables tables;
  if (const std::optional<SavedState> state = state_to_resume(config)) {
    const std::string source = state->directory + "/manifest.json";
    const Json* record = state->extra.find("costs");
    const bool replaced = is_allowed(config, "profile") && other_profile(config, state->extra);
    if (record != nullptr) {
      require_same_paces(config, opened, *record, state->directory);
      if (!replaced) tables = tables_in(*record, source);
    }
  }
  if (config.profile.empty()) return tables;
  std::vector<std::string> missing = unpaced(opened);
  std::erase_if(missing, [&](const std::string& place) { return tables.find(place) != nullptr; });
  if (missing.empty()) return tables;
  const Topology* const here = opened.described ? nullptr : &opened.topology;
  RunTables given = read_profile(config.profile, missing, here);
  tables.by_place.merge(given.by_place);
  return tables;
}

Json saved_tables(const RunTables& tables, const OpenedModel& opened) {
  Json record = tables_record(tables);
  Json paced = JsonObject{};
  for (const ComputePlace& place : opened.devices.places) {
    if (place.costs) paced[place.budget.name] = place.costs->digest().hex();
  }
  if (!paced.as_object().empty()) record["paced"] = std::move(paced);
  return record;
}

}  // namespace hearth
