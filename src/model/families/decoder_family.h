// The published tensor names of decoder-only MoE models. A family of this layout only reads its
// config.json and overrides the names of its experts if they differ.
#pragma once

#include "model/family.h"

namespace hearth {

/// How a family publishes a layer's experts: "model.layers.0." + part + "experts.0." + gate +
/// ".weight", and the router as part + "gate.weight".
struct ExpertNames {
  std::string part = "mlp.";
  std::string gate = "gate_proj";
  std::string up = "up_proj";
  std::string down = "down_proj";
};

class DecoderFamily : public Family {
 public:
  ParameterTable make_table(const ModelSpec& spec) const override;
  bool ignores(const std::string& tensor) const override;
  std::string tied_source(const ModelSpec& spec, const std::string& tensor) const override;
  int64_t tensor_count(const ModelSpec& spec) const override;

 protected:
  virtual ExpertNames expert_names() const { return {}; }
};

}  // namespace hearth
