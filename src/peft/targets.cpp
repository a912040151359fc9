#include "peft/targets.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error_format.h"
#include "base/setting.h"

namespace hearth {
namespace {

/// Matrices of one kind and slot: their names differ in the layer alone (of experts: and number).
using Group = std::pair<BlockKind, Slot>;

struct Members {
  std::vector<size_t> all, adapted;  // modules
  bool whole() const { return all.size() == adapted.size(); }
};

std::map<Group, Members> groups_of(const std::vector<AdapterModule>& modules,
                                   const std::vector<bool>& adapted) {
  std::map<Group, Members> groups;
  for (size_t i = 0; i < modules.size(); ++i) {
    Members& members = groups[{modules[i].kind, modules[i].slot}];
    members.all.push_back(i);
    if (adapted[i]) members.adapted.push_back(i);
  }
  return groups;
}

Json number(double value) {
  constexpr double kWhole = 9e15;
  if (value == std::floor(value) && std::abs(value) < kWhole) return static_cast<int64_t>(value);
  return value;
}

Json list(const std::set<std::string>& names) {
  JsonArray out;
  for (const std::string& name : names) out.emplace_back(name);
  return out;
}

}  // namespace

AdapterPlan::AdapterPlan(const ParameterTable& table, const Family& family, AdapterLayout layout)
    : modules(adapter_modules(table)) {
  add_pairs(table);
  add_whole(table);
  set_sizes();
  choose_targets(peft_moves_targets(family), layout);
}

// Loaders stack the experts of a layer, and gate with up, so all of them stand in the file if one
// does. PEFT finds gate and up of a layer only where down is adapted, too.
void AdapterPlan::add_pairs(const ParameterTable& table) {
  std::unordered_map<TensorId, FilePair> of_matrix;
  std::unordered_map<TensorId, double> scales;
  for (const Block& block : table.blocks()) {
    if (block.kind != BlockKind::adapter) continue;
    for (TensorId id = block.begin; id < block.end; id += 2) {
      const Tensor& a = table.tensor(id);
      HEARTH_CHECK(a.factor == Factor::a, "adapter plan: pairs are A, then B");
      const TensorId matrix = *table.find_slot(block.base, a.slot);
      of_matrix[matrix] = {0, id, id + 1, a.rows, a.rows, 1};
      scales[matrix] = block.scale;
    }
  }
  HEARTH_CHECK(!of_matrix.empty(), "adapter plan: a table without adapters");
  std::set<std::pair<int32_t, bool>> stacked;  // layers; whether gate and up
  for (const AdapterModule& module : modules) {
    if (module.kind != BlockKind::expert || !of_matrix.contains(module.matrix)) continue;
    stacked.insert({module.layer, false});
    if (module.in_gate_up()) stacked.insert({module.layer, true});
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    const AdapterModule& module = modules[i];
    const auto found = of_matrix.find(module.matrix);
    const bool filled =
        module.kind == BlockKind::expert && stacked.contains({module.layer, module.in_gate_up()});
    if (found == of_matrix.end() && !filled) continue;
    FilePair pair = found == of_matrix.end() ? FilePair() : found->second;
    pair.module = i;
    if (found != of_matrix.end()) pair.factor = scales[module.matrix];
    pairs.push_back(pair);
  }
}

// PEFT keeps whole modules, under their full names (modules_to_save).
void AdapterPlan::add_whole(const ParameterTable& table) {
  std::set<std::string> adapted;
  for (const FilePair& pair : pairs) adapted.insert(modules[pair.module].now);
  const bool tied = !table.find_slot(table.find_block(BlockKind::head), Slot::head).has_value();
  const auto refuse = [](const Tensor& t, const std::string& why) {
    throw usage_error("{}: {}; freeze it, or train without adapters ({})",
                      spelled(Setting::trainable, quoted(t.name)), why,
                      spelled(Setting::method, "full"));
  };
  for (const Tensor& t : table.tensors()) {
    if (!t.trainable || t.factor != Factor::none) continue;
    const std::string module = module_of(name_in_transformers_5(t.name));
    const BlockKind kind = table.block(t.block).kind;
    if (kind == BlockKind::expert) {
      refuse(t, "an adapter directory cannot hold the weights of single experts");
    }
    if (kind == BlockKind::embedding && tied) {
      refuse(t, "an adapter directory cannot hold an embedding that is also the head");
    }
    if (adapted.contains(module)) {
      refuse(t,
             "an adapter directory cannot hold both the weights of a module and an adapter of it");
    }
    saved_modules.insert(module);
  }
  for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) {
    const Tensor& t = table.tensor(id);
    if (t.factor != Factor::none) break;
    if (saved_modules.contains(module_of(name_in_transformers_5(t.name)))) whole.push_back(id);
  }
}

void AdapterPlan::set_sizes() {
  const auto is_expert = [&](const FilePair& pair) {
    return modules[pair.module].kind == BlockKind::expert;
  };
  const bool experts = std::any_of(pairs.begin(), pairs.end(), is_expert);
  for (const FilePair& pair : pairs) {
    if (pair.a < 0 || (experts && !is_expert(pair))) continue;
    rank = std::max(rank, pair.rank);
    if (scale == 0) scale = pair.factor;
  }
  HEARTH_CHECK(scale != 0 && std::isfinite(scale), "adapter plan: a scale of zero");
  for (FilePair& pair : pairs) {
    if (is_expert(pair)) pair.file_rank = rank;
    if (pair.a >= 0) pair.factor /= scale;
  }
}

// Names of modules where all loaders understand them alike; of a parameter where PEFT would take
// the name of a module for that of all experts (its issue 3711), or there is no module.
void AdapterPlan::choose_targets(bool moved, AdapterLayout layout) {
  std::vector<bool> adapted(modules.size());
  std::map<size_t, int64_t> rank_of;
  for (const FilePair& pair : pairs) {
    adapted[pair.module] = true;
    rank_of[pair.module] = pair.file_rank;
  }
  for (const auto& [group, members] : groups_of(modules, adapted)) {
    const BlockKind kind = group.first;
    if (members.adapted.empty() || kind == BlockKind::expert) continue;
    const bool mlp = kind == BlockKind::shared || kind == BlockKind::dense;
    const bool router = kind == BlockKind::router;
    const bool parameter = mlp || (router && !(moved && members.whole()));
    for (const size_t i : members.adapted) {
      const AdapterModule& module = modules[i];
      std::string name = parameter ? module.parameter() : module.name;
      if (members.whole()) {
        name = mlp || router ? name_in_layer(name) : leaf_of(name);
      }
      (parameter ? target_parameters : target_modules).insert(name);
      if (rank_of[i] == rank) continue;
      // The router is a parameter to PEFT whatever its target.
      ranks[router && !parameter ? std::string(leaf_of(name)) + "(\\.weight)?" : name] = rank_of[i];
    }
  }
  target_experts(adapted, moved, layout);
}

void AdapterPlan::target_experts(const std::vector<bool>& adapted, bool moved,
                                 AdapterLayout layout) {
  bool all_layers = true, any = false, other_mlp = false;
  for (const auto& [group, members] : groups_of(modules, adapted)) {
    other_mlp = other_mlp || group.first == BlockKind::shared || group.first == BlockKind::dense;
    if (group.first != BlockKind::expert) continue;
    any = any || !members.adapted.empty();
    all_layers = all_layers && (members.whole() || members.adapted.empty());
  }
  if (!any) return;
  // Of some layers alone only the parameters can be named: PEFT takes a module for all layers.
  const bool by_module = all_layers && layout == AdapterLayout::per_expert;
  const bool by_parameter = !by_module || !moved;
  for (size_t i = 0; i < modules.size(); ++i) {
    const AdapterModule& module = modules[i];
    if (!adapted[i] || module.kind != BlockKind::expert) continue;
    if (by_module) {
      const std::string leaf(leaf_of(module.name));
      // Where shared experts or dense layers have the same names: with the number.
      target_modules.insert(other_mlp ? "experts." + std::to_string(module.expert) + "." + leaf
                                      : leaf);
    }
    if (!by_parameter) continue;
    target_parameters.insert(all_layers ? std::string(name_in_layer(module.now)) : module.now);
    if (module.in_gate_up()) ranks[".*\\.gate_up_proj"] = 2 * rank;
  }
}

Json AdapterPlan::config() const {
  JsonObject rank_pattern, alpha_pattern;
  for (const auto& [name, of] : ranks) {
    rank_pattern.emplace_back(name, of);
    alpha_pattern.emplace_back(name, number(scale * static_cast<double>(of)));
  }
  Json parameters, saved;
  if (!saved_modules.empty()) saved = list(saved_modules);
  if (!target_parameters.empty()) parameters = list(target_parameters);
  return JsonObject{{"peft_type", "LORA"},
                    {"task_type", "CAUSAL_LM"},
                    {"inference_mode", true},
                    {"r", rank},
                    {"lora_alpha", number(scale * static_cast<double>(rank))},
                    {"lora_dropout", 0.0},
                    {"bias", "none"},
                    {"target_modules", list(target_modules)},
                    {"target_parameters", parameters},
                    {"rank_pattern", std::move(rank_pattern)},
                    {"alpha_pattern", std::move(alpha_pattern)},
                    {"use_rslora", false},
                    {"use_dora", false},
                    {"fan_in_fan_out", false},
                    {"init_lora_weights", true},
                    {"modules_to_save", saved},
                    {"layers_to_transform", nullptr},
                    {"layers_pattern", nullptr}};
}

void require_storable(const ParameterTable& table, const Family& family) {
  AdapterPlan(table, family, AdapterLayout::per_expert);
}

}  // namespace hearth
