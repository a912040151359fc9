// Records which trained tensors ever had a gradient.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/parameter_table.h"
#include "model/spec.h"

namespace hearth {

/// Records, for each trained tensor, whether AdamW ever saw a gradient for it. Weight decay also
/// changes weights, so the verdict requires a changed value and a gradient.
///
/// AdamW's moments cannot answer this at the end of a run. Without new gradients the first moment
/// shrinks by beta1 per step and is exactly 0 after some 740 steps. Right after a step with a
/// gradient it is not 0, so the record checks then.
class GradientRecord {
 public:
  GradientRecord(const ParameterTable& table, const ModelSpec& spec);

  /// Call after each step that changed weights, before the next one. `expert_tokens` holds, for
  /// each MoE layer, the tokens that each expert got. Reads the moments of tensors that had no
  /// gradient so far, and skips experts that got no token. The table must be bound to memory.
  void look(const ParameterTable& table, const std::vector<std::vector<double>>& expert_tokens);
  bool had_gradient(TensorId id) const { return had_[static_cast<size_t>(id)]; }

  /// The tensors of another record of the same table (`to_json`) had a gradient, too.
  void add(const std::string& digits);

  /// One bit per trained tensor in table order, as hexadecimal digits. Member "gradients" in the
  /// manifest of saved state.
  Json to_json() const;
  /// Restores the record of a saved state. nullptr (an older version's state) counts every tensor,
  /// so the verdict depends only on the weights. Storage error that names `source` if malformed.
  void restore(const Json* saved, const std::string& source);

 private:
  std::vector<size_t> moe_layer_;  // by layer: its index in `expert_tokens`
  std::vector<bool> had_;          // by tensor
  std::vector<TensorId> trained_;  // in the order of the table
  std::vector<TensorId> waiting_;  // trained, but without a gradient so far
};

}  // namespace hearth
