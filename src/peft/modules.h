// The linear maps of a model, under PEFT's names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/family.h"
#include "model/parameter_table.h"

namespace hearth {

/// In transformers 4 every map of an expert is a module. In transformers 5 a layer's experts are
/// two parameters, `mlp.experts.gate_up_proj` and `mlp.experts.down_proj`, and Mixtral's
/// `block_sparse_moe` is named `mlp`.
struct AdapterModule {
  TensorId matrix = 0;
  BlockKind kind = BlockKind::attention;
  Slot slot = Slot::q;
  int32_t layer = -1;
  int32_t expert = -1;
  std::string name;  // published name: "model.layers.0.mlp.experts.3.gate_proj"
  std::string now;   // name in transformers 5: the module, or an expert's parameter
  /// The parameter in transformers 5 that holds the matrix.
  std::string parameter() const { return kind == BlockKind::expert ? now : now + ".weight"; }
  bool in_gate_up() const { return kind == BlockKind::expert && slot != Slot::down; }
};

/// Every matrix that can have a pair, in the order of the table.
std::vector<AdapterModule> adapter_modules(const ParameterTable& table);

/// Whether PEFT (0.19 to 0.21) rewrites targets with published names for transformers 5. True
/// except for Qwen2-MoE, whose targets it does not change.
bool peft_moves_targets(const Family& family);

/// The name in transformers 5 of a tensor outside the experts.
std::string name_in_transformers_5(std::string name);
/// "model.norm.weight" -> "model.norm".
std::string module_of(const std::string& tensor);

/// "model.layers.3.mlp.gate" -> "mlp.gate". Names outside the layers do not change.
std::string_view name_in_layer(std::string_view name);
/// "model.layers.3.mlp.gate" -> "gate".
std::string_view leaf_of(std::string_view name);

}  // namespace hearth
