#include "peft/modules.h"

#include "base/error.h"

namespace hearth {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kLayers = "model.layers.";
constexpr std::string_view kMixtralPart = ".block_sparse_moe.";

bool can_have_pair(const Block& block, const Tensor& t) {
  if (t.vector || t.factor != Factor::none) return false;
  return block.kind != BlockKind::embedding && t.slot != Slot::shared_gate;
}

std::string fused_parameter(const std::string& name, Slot slot) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = name.find(kExperts);
  HEARTH_CHECK(at != std::string::npos, "adapter modules: no expert's name: " + name);
  return name.substr(0, at + kExperts.size()) + (slot == Slot::down ? "down_proj" : "gate_up_proj");
}

}  // namespace

std::vector<AdapterModule> adapter_modules(const ParameterTable& table) {
  std::vector<AdapterModule> modules;
  for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) {
    const Tensor& t = table.tensor(id);
    const Block& block = table.block(t.block);
    if (!can_have_pair(block, t)) continue;
    HEARTH_CHECK(t.name.ends_with(kWeight), "adapter modules: no weight's name: " + t.name);
    AdapterModule module{id, block.kind, t.slot, block.layer, block.expert, {}, {}};
    module.name = t.name.substr(0, t.name.size() - kWeight.size());
    module.now = name_in_transformers_5(module.name);
    if (block.kind == BlockKind::expert) module.now = fused_parameter(module.now, t.slot);
    modules.push_back(std::move(module));
  }
  return modules;
}

std::string name_in_transformers_5(std::string name) {
  const size_t part = name.find(kMixtralPart);
  if (part != std::string::npos) name.replace(part, kMixtralPart.size(), ".mlp.");
  return name;
}

std::string module_of(const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); }

bool peft_moves_targets(const Family& family) { return family.model_type() != "qwen2_moe"; }

std::string_view name_in_layer(std::string_view name) {
  if (!name.starts_with(kLayers)) return name;
  const size_t dot = name.find('.', kLayers.size());
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view leaf_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace hearth
