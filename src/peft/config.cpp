#include "peft/config.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "model/config_reader.h"

namespace hearth {
namespace {

// Settings without effect on what a stored adapter computes.
constexpr std::string_view kInert[] = {"auto_mapping",  "revision",       "inference_mode",
                                       "megatron_core", "runtime_config", "qalora_group_size"};
// Settings that are read below.
constexpr std::string_view kRead[] = {"peft_type",
                                      "task_type",
                                      "base_model_name_or_path",
                                      "peft_version",
                                      "r",
                                      "lora_alpha",
                                      "lora_dropout",
                                      "use_rslora",
                                      "target_modules",
                                      "target_parameters",
                                      "exclude_modules",
                                      "layers_to_transform",
                                      "layers_pattern",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "init_lora_weights",
                                      "bias",
                                      "modules_to_save"};

constexpr size_t kMaxSaved = 4096;

// What PEFT takes for the lists of layers that these families have; it asks for no name by the first two.
constexpr std::string_view kLayersPatterns[] = {R"("")", "[]", R"("layers")", R"(["layers"])"};

template <size_t N>
bool is_in(std::string_view key, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

bool is_off(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_bool()) return !value.as_bool();
  if (value.is_array()) return value.as_array().empty();
  return value.is_object() && value.as_object().empty();
}

void refuse_what_is_not_applied(const Json& json, const ConfigReader& config) {
  for (const auto& [key, value] : json.as_object()) {
    if (is_in(key, kInert) || is_in(key, kRead) || is_off(value)) continue;
    config.refuse(key, "not supported; only plain LoRA is");
  }
  if (config.text("peft_type") != "LORA") config.refuse("peft_type", "only LORA is supported");
  if (config.text("task_type", "CAUSAL_LM") != "CAUSAL_LM") {
    config.refuse("task_type", "only CAUSAL_LM is supported");
  }
  if (config.text("bias", "none") != "none") {
    config.refuse("bias", "trained biases are not supported, only none");
  }
  config.number("lora_dropout", 0, 1, 0);
  const Json* lists = config.find("layers_pattern");
  if (lists != nullptr && !is_in(lists->dump(), kLayersPatterns)) {
    config.refuse("layers_pattern", "expected \"layers\"");
  }
  const Json* init = config.find("init_lora_weights");
  const bool plain_init =
      init == nullptr || init->is_bool() || (init->is_string() && init->as_string() == "gaussian");
  if (!plain_init) {
    config.refuse("init_lora_weights",
                  "an initialisation that changes the base; convert the adapter to plain LoRA "
                  "first (PEFT's path_initial_model_for_weight_conversion)");
  }
}

/// layers_to_transform, a number or a list of them; an empty list is none.
std::optional<std::vector<int64_t>> read_layers(const ConfigReader& config) {
  const Json* value = config.find("layers_to_transform");
  if (value == nullptr) return std::nullopt;
  const JsonArray list = value->is_array() ? value->as_array() : JsonArray{*value};
  if (list.empty()) return std::nullopt;
  std::vector<int64_t> layers;
  for (const Json& layer : list) {
    if (!layer.is_signed()) config.refuse("layers_to_transform", "expected layer numbers");
    layers.push_back(layer.as_int());
  }
  return layers;
}

}  // namespace

AdapterConfig::AdapterConfig(const Json& json, const std::string& source) : source_(source) {
  const ConfigReader config(json, source);
  refuse_what_is_not_applied(json, config);
  for (const char* key : {"r", "lora_alpha"}) {
    if (config.is_null(key)) config.refuse(key, "expected a number, found null");
  }
  rank_ = config.integer("r", 1, int64_t{1} << 20, 8);
  alpha_ = config.number("lora_alpha", 1e-9, 1e9, 8);
  rslora_ = config.boolean("use_rslora", false);
  base_model_ = config.text("base_model_name_or_path", "");
  version_ = config.text("peft_version", "");
  if (const Json* mapping = json.find("auto_mapping")) {
    other_program_ = mapping->dump().find("unsloth") != std::string::npos;
  }
  const auto where = [&](const char* key) { return source + ": " + key; };
  const Json* targets = config.find("target_modules");
  std::string word = targets != nullptr && targets->is_string() ? targets->as_string() : "";
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  rules_.all_linear = word == "all-linear";
  if (!rules_.all_linear) rules_.modules = NameRule(targets, where("target_modules"));
  rules_.parameters = NameRule(config.find("target_parameters"), where("target_parameters"));
  if (rules_.parameters.is_regex()) config.refuse("target_parameters", "expected a list of names");
  if (!rules_.all_linear && rules_.modules.empty() && rules_.parameters.empty()) {
    config.refuse("target_modules",
                  "neither target_modules nor target_parameters selects a module");
  }
  saved_ = NameRule(config.find("modules_to_save"), where("modules_to_save"));
  if (saved_.is_regex() || saved_.names().size() > kMaxSaved) {
    config.refuse("modules_to_save", "expected a list of names");
  }
  excluded_ = NameRule(config.find("exclude_modules"), where("exclude_modules"));
  ranks_ = ValuePattern(config.find("rank_pattern"), true, where("rank_pattern"));
  alphas_ = ValuePattern(config.find("alpha_pattern"), false, where("alpha_pattern"));
  layers_ = read_layers(config);
  if (layers_ && (rules_.all_linear || rules_.modules.is_regex())) {
    config.refuse("layers_to_transform", "PEFT allows it only with a list of target_modules");
  }
}

// PEFT's check_target_module_exists: what is excluded first; layers count where a name in the list
// is but the end of the module's.
bool AdapterConfig::takes(const Rules& rules, const AdapterModule& module,
                          const std::string& name) const {
  if (excluded_.matches(name) || saved_.matches(name)) return false;
  if (rules.all_linear) return module.kind != BlockKind::head;
  if (!rules.modules.matches(name)) return false;
  if (!layers_ || rules.modules.names().contains(name)) return true;
  return std::find(layers_->begin(), layers_->end(), module.layer) != layers_->end();
}

bool AdapterConfig::selects_4(const AdapterModule& module) const {
  return takes(rules_, module, module.name) || rules_.parameters.matches(module.name + ".weight");
}

// Whether a pattern takes a name that a module has in transformers 5, or an expert's as it was.
bool AdapterConfig::matches_5(const AdapterModule& module) const {
  if (module.kind != BlockKind::expert) return takes(rules_, module, module.now);
  const std::string container =
      module.now.substr(0, module.now.size() - leaf_of(module.now).size());
  return (!module.in_gate_up() && takes(rules_, module, module.now)) ||
         takes(rules_, module, container + std::string(leaf_of(module.name)));
}

// PEFT's _convert_peft_config_moe: leaf names of experts and router become parameters of all
// layers; a pattern is first taken apart into the leaf names that it matches.
AdapterConfig::Rules AdapterConfig::moved_rules(const std::vector<AdapterModule>& modules) const {
  std::unordered_set<std::string> targets;
  std::unordered_map<std::string, std::string> moved;  // leaf names
  for (const AdapterModule& module : modules) {
    const std::string leaf(leaf_of(module.name));
    if (module.kind == BlockKind::expert) moved[leaf] = leaf_of(module.now);
    if (module.kind == BlockKind::router) moved[leaf] = "gate.weight";
    if (rules_.all_linear ? module.kind != BlockKind::head
                          : rules_.modules.is_regex() && matches_5(module)) {
      targets.insert(leaf);
    }
  }
  const std::unordered_set<std::string>& listed = rules_.modules.names();
  targets.insert(listed.begin(), listed.end());
  std::unordered_set<std::string> remaining, parameters = rules_.parameters.names();
  for (const std::string& target : targets) {
    const auto found = moved.find(std::string(leaf_of(target)));
    if (found == moved.end()) {
      remaining.insert(target);
    } else {
      parameters.insert(found->second);
    }
  }
  Rules rules;
  rules.modules = NameRule(std::move(remaining));
  rules.parameters = NameRule(std::move(parameters));
  return rules;
}

bool AdapterConfig::selects_5(const Rules& rules, const AdapterModule& module) const {
  const bool is_module = module.kind != BlockKind::expert && module.kind != BlockKind::router;
  return (is_module && takes(rules, module, module.now)) ||
         rules.parameters.matches(module.parameter());
}

std::vector<bool> AdapterConfig::selected(const std::vector<AdapterModule>& modules,
                                          AdapterNames names, bool moved) const {
  const bool as_5 = names == AdapterNames::transformers_5;
  const Rules rules = as_5 && moved ? moved_rules(modules) : rules_;
  std::vector<bool> selected;
  for (const AdapterModule& module : modules) {
    selected.push_back(as_5 ? selects_5(rules, module) : selects_4(module));
  }
  return selected;
}

AdapterConfig::Size AdapterConfig::size_of(const AdapterModule& module, AdapterNames names,
                                           bool fused) const {
  const bool as_5 = names == AdapterNames::transformers_5;
  const auto value = [&](const ValuePattern& pattern, double fallback) {
    const double* found = pattern.find(as_5 ? module.now : module.name);
    if (found == nullptr && module.kind != BlockKind::expert) {
      found = pattern.find((as_5 ? module.now : module.name) + ".weight");
    }
    return found == nullptr ? fallback : *found;
  };
  // Where PEFT joins gate and up it joins their ranks, too; its patterns then name the joint one.
  const bool joined = as_5 && !fused && module.in_gate_up();
  const double twice = joined ? 2 : 1;
  const double rank = value(ranks_, static_cast<double>(rank_) * twice);
  const double alpha = value(alphas_, alpha_ * twice);
  return {rank / twice, alpha / (rslora_ ? std::sqrt(rank) : rank)};
}

bool AdapterConfig::saves(std::string_view module) const {
  const auto& names = saved_.names();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return module.ends_with(name); });
}

std::set<std::string> AdapterConfig::saved() const {
  return {saved_.names().begin(), saved_.names().end()};
}

// Where patterns may name experts in either of two ways, the base decides.
bool AdapterConfig::may_have_rank(std::string_view module, int64_t rows) const {
  const bool fused = module.ends_with(".experts") || module.ends_with(".experts.base_layer");
  const bool expert = fused || module.find(".experts.") != std::string_view::npos;
  if (expert && ranks_.size() > 0) return true;
  return fused ? rows % rank_ == 0 : rows == rank_ || ranks_.has(static_cast<double>(rows));
}

bool AdapterConfig::packs_as_peft() const {
  int major = 0, minor = 0, patch = 0, used = 0;
  if (other_program_) return false;
  if (std::sscanf(version_.c_str(), "%4d.%4d.%4d%n", &major, &minor, &patch, &used) != 3) {
    return false;
  }
  const int64_t version = (int64_t{major} * 10000 + minor) * 10000 + patch;
  constexpr int64_t kFirst = int64_t{19} * 10000 + 1;  // 0.19.1
  return version > kFirst || (version == kFirst && static_cast<size_t>(used) == version_.size());
}

}  // namespace hearth
