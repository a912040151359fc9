#include "train/settled_options.h"

#include <ctime>
#include <optional>

#include "base/error.h"
#include "record/journal.h"
#include "state/run_identity.h"
#include "state/state_search.h"

namespace hearth {
namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[16] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

// The state that a resume starts from. The resume itself reports what is wrong with it.
std::optional<SavedState> state_to_resume(const TrainConfig& config) {
  try {
    auto state = StateSearch(config.out, [](const RejectedState&) {}).next();
    if (state || config.resume != ResumeMode::from_directory) return state;
    const std::string& from = config.resume_from;
    if (step_of_state_directory(from)) return open_state(from);
    return StateSearch(from, [](const RejectedState&) {}).next();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What the run recorded: in the state to resume, else in the journal if it ended without one.
std::optional<RunIdentity> recorded_run(const TrainConfig& config) {
  if (const auto state = state_to_resume(config)) return identity_in(state->extra);
  const std::optional<Json> ended = read_journaled_run(config.out + "/journal.jsonl").identity;
  return ended ? std::optional(identity_in(*ended)) : std::nullopt;
}

/// A recorded value: text, number or null; on and off are texts. Null if it is none of these.
Json value_of(const std::string& recorded) {
  if (recorded == "on" || recorded == "off") return recorded;
  try {
    return parse_json(recorded, "a recorded option");
  } catch (const Error&) {  // the comparison of options reports it
    return {};
  }
}

void record(TrainConfig& config, const char* option, const std::string& value) {
  for (TrainConfig::Recorded& recorded : config.recorded) {
    if (recorded.name == option) recorded.value = value;
  }
}

}  // namespace

void settle_options(TrainConfig& config) {
  const std::optional<RunIdentity> run = recorded_run(config);
  const auto take = [&](const char* option, const auto& set) {
    const auto value = run ? run->option(option) : std::nullopt;
    if (value && set(value_of(*value))) record(config, option, *value);
  };
  if (config.template_date.empty()) {
    if (!run) {
      config.template_date = today();
      record(config, "template-date", Json(config.template_date).dump());
    }
    take("template-date", [&](const Json& date) {
      if (date.is_string()) config.template_date = date.as_string();
      return date.is_string();
    });
  }
  if (config.packing_by_data) {
    take("packing", [&](const Json& packing) {
      if (!packing.is_string()) return false;
      config.packing = packing.as_string() == "on";
      config.packing_by_data = false;
      return true;
    });
  }
  if (config.epochs_by_data) {
    take("epochs", [&](const Json& epochs) {
      if (!epochs.is_number() || !(epochs.as_double() > 0)) return false;
      config.epochs = epochs.as_double();
      config.epochs_by_data = false;
      return true;
    });
  }
  if (!config.logical_shards) {
    take("logical-shards", [&](const Json& shards) {
      if (!shards.is_signed() || shards.as_int() < 1) return false;
      config.logical_shards = shards.as_int();
      return true;
    });
    // Whoever read the options did not know of a launcher's ranks.
    if (!run) record(config, "logical-shards", std::to_string(config.shards()));
  }
  if (!config.warmup_ratio) {
    take("warmup-ratio", [&](const Json& ratio) {
      if (!ratio.is_number()) return false;
      config.warmup_ratio = ratio.as_double();
      return true;
    });
  }
}

Json settled(const TrainConfig& config) {
  JsonObject options{{"template_date", config.template_date},
                     {"packing", config.packing},
                     {"packing_by_data", config.packing_by_data},
                     {"epochs", config.epochs},
                     {"epochs_by_data", config.epochs_by_data}};
  if (config.logical_shards) options.emplace_back("logical_shards", *config.logical_shards);
  if (config.warmup_ratio) options.emplace_back("warmup_ratio", *config.warmup_ratio);
  return options;
}

void take_settled(TrainConfig& config, const Json& settled) {
  config.template_date = settled.find("template_date")->as_string();
  config.packing = settled.find("packing")->as_bool();
  config.packing_by_data = settled.find("packing_by_data")->as_bool();
  config.epochs = settled.find("epochs")->as_double();
  config.epochs_by_data = settled.find("epochs_by_data")->as_bool();
  if (const Json* const shards = settled.find("logical_shards")) {
    config.logical_shards = shards->as_int();
  }
  if (const Json* const ratio = settled.find("warmup_ratio")) {
    config.warmup_ratio = ratio->as_double();
  }
}

}  // namespace hearth
