// The linear maps of a model under the names by which PEFT finds them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/family.h"
#include "model/parameter_table.h"

namespace hearth {

/// transformers 4 has every expert's maps as modules; transformers 5 has the experts of a layer as
/// two parameters, `mlp.experts.gate_up_proj` and `mlp.experts.down_proj`, and calls Mixtral's
/// `block_sparse_moe` `mlp`.
struct AdapterModule {
  TensorId matrix = 0;
  BlockKind kind = BlockKind::attention;
  Slot slot = Slot::q;
  int32_t layer = -1;
  int32_t expert = -1;
  std::string name;  // published, one by one: "model.layers.0.mlp.experts.3.gate_proj"
  std::string now;   // in transformers 5: the module; of experts the parameter
  /// The parameter of transformers 5 that holds it.
  std::string parameter() const { return kind == BlockKind::expert ? now : now + ".weight"; }
  bool in_gate_up() const { return kind == BlockKind::expert && slot != Slot::down; }
};

/// Every matrix that can have a pair, in the order of the table.
std::vector<AdapterModule> adapter_modules(const ParameterTable& table);

/// Whether PEFT (0.19 to 0.21) rewrites targets of the published names for transformers 5. It does
/// for all but Qwen2-MoE, whose targets it takes as they are.
bool peft_moves_targets(const Family& family);

/// The name of a tensor that is no expert's in transformers 5.
std::string name_in_transformers_5(std::string name);
/// "model.norm.weight" -> "model.norm".
std::string module_of(const std::string& tensor);

/// "model.layers.3.mlp.gate" -> "mlp.gate"; names of no layer as they are.
std::string_view name_in_layer(std::string_view name);
/// "model.layers.3.mlp.gate" -> "gate".
std::string_view leaf_of(std::string_view name);

}  // namespace hearth
