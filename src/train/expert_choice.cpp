#include "train/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/setting.h"
#include "record/journal.h"
#include "setup/expert_count.h"
#include "state/run_identity.h"
#include "state/state_search.h"

namespace hearth {
namespace {

std::string percent_text(double percent) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", percent);
  return text;
}

std::string option_text(double percent) {
  char text[40];
  std::snprintf(text, sizeof text, "top:%.15g%%", percent);
  return text;
}

/// nullopt if a record is not of this model and option.
std::optional<ExpertChoice> choice_of(const Json& record, const ModelSpec& spec, double percent) {
  const Json* option = record.is_object() ? record.find("option") : nullptr;
  const Json* layers = record.is_object() ? record.find("layers") : nullptr;
  if (option == nullptr || option->dump() != Json(option_text(percent)).dump()) return {};
  if (layers == nullptr || !layers->is_array()) return {};
  ExpertChoice choice(static_cast<size_t>(spec.layers));
  for (const Json& entry : layers->as_array()) {
    const Json* layer = entry.is_object() ? entry.find("layer") : nullptr;
    const Json* experts = entry.is_object() ? entry.find("experts") : nullptr;
    if (layer == nullptr || !layer->is_signed() || layer->as_int() < 0 ||
        layer->as_int() >= spec.layers || experts == nullptr || !experts->is_array()) {
      return {};
    }
    for (const Json& expert : experts->as_array()) {
      if (!expert.is_signed() || expert.as_int() < 0 || expert.as_int() >= spec.experts) {
        return {};
      }
      choice[static_cast<size_t>(layer->as_int())].push_back(static_cast<int32_t>(expert.as_int()));
    }
  }
  return choice;
}

}  // namespace

ChosenExperts choose_experts(const ExpertCounts& counts, double percent, int64_t sample_tokens) {
  ChosenExperts chosen;
  chosen.experts.resize(counts.size());
  JsonArray layers;
  double all = 0, all_taken = 0;
  for (size_t layer = 0; layer < counts.size(); ++layer) {
    const std::vector<double>& of = counts[layer];
    if (of.empty()) continue;
    std::vector<int32_t>& experts = chosen.experts[layer];
    experts.resize(of.size());
    std::iota(experts.begin(), experts.end(), 0);
    const auto tokens = [&](int32_t expert) { return of[static_cast<size_t>(expert)]; };
    std::stable_sort(experts.begin(), experts.end(),
                     [&](int32_t a, int32_t b) { return tokens(a) > tokens(b); });
    experts.resize(static_cast<size_t>(chosen_experts(static_cast<int64_t>(of.size()), percent)));
    std::sort(experts.begin(), experts.end());
    double taken = 0;
    for (const int32_t expert : experts) taken += tokens(expert);
    const double sum = std::accumulate(of.begin(), of.end(), 0.0);
    all += sum;
    all_taken += taken;
    layers.push_back(JsonObject{{"layer", static_cast<int64_t>(layer)},
                                {"share", sum > 0 ? taken / sum : 0},
                                {"experts", JsonArray(experts.begin(), experts.end())}});
  }
  chosen.record = JsonObject{{"option", option_text(percent)},
                             {"sample_tokens", sample_tokens},
                             {"routed_tokens", static_cast<int64_t>(all)},
                             {"share", all > 0 ? all_taken / all : 0},
                             {"layers", std::move(layers)}};
  return chosen;
}

std::optional<ChosenExperts> saved_experts(const TrainConfig& config, const ModelSpec& spec) {
  const auto in_run = [&](const Json& identity) {
    const std::optional<Json> record = identity_in(identity).experts.value;
    const auto choice = record ? choice_of(*record, spec, config.experts_top) : std::nullopt;
    if (choice) return ChosenExperts{*choice, *record};
    return ChosenExperts{placeholder_experts(spec, config.experts_top), Json()};
  };
  const auto newest_in = [&](const std::string& directory) {
    StateSearch search(directory, [](const RejectedState&) {});  // told when the run looks for it
    const std::optional<SavedState> state = search.next();
    return state ? std::optional<ChosenExperts>(in_run(state->extra)) : std::nullopt;
  };
  std::optional<ChosenExperts> found = newest_in(config.out);
  if (!found) {  // a run that ended without a saved state
    const std::optional<Json> run = read_journaled_run(config.out + "/journal.jsonl").identity;
    if (run) found = in_run(*run);
  }
  if (found || config.resume != ResumeMode::from_directory) return found;
  const std::string& from = config.resume_from;
  if (!step_of_state_directory(from)) return newest_in(from);
  if (file_info(from).kind == FileKind::none) return std::nullopt;  // refused where it is opened
  return in_run(open_state(from).extra);
}

std::string experts_line(const ChosenExperts& chosen, const ModelSpec& spec) {
  size_t each = 0;
  for (const auto& layer : chosen.experts) each = std::max(each, layer.size());
  const auto text = [&](const char* key) {
    const Json* value = chosen.record.find(key);
    return value == nullptr ? "?" : value->is_string() ? value->as_string() : value->dump();
  };
  const Json* share = chosen.record.find("share");
  const double taken = share != nullptr && share->is_number() ? share->as_double() : 0;
  return "experts: " + std::to_string(each) + " of " + std::to_string(spec.experts) +
         " per layer get adapters (" + spelled(Setting::experts, text("option")) +
         "); they received " + percent_text(100 * taken) + " % of " + text("routed_tokens") +
         " routed tokens in a sample of " + text("sample_tokens") + " tokens";
}

}  // namespace hearth
