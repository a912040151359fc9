// Models of every kind of block, for tests that compare where their steps run.
#pragma once

#include <string>
#include <vector>

#include "runtime/steps.h"

namespace hearth::test {

struct ModelCase {
  JsonObject config;
  std::vector<std::string> adapters;
};

/// Every kind of block: a dense layer, a tied head, a shared expert; with and without adapters.
inline std::vector<ModelCase> models() {
  return {{{{"num_hidden_layers", 3}, {"mlp_only_layers", JsonArray{1}}}, {}},
          {{{"tie_word_embeddings", true}, {"num_experts", 7}}, {"attention", "experts"}},
          {{{"model_type", "qwen2_moe"}, {"shared_expert_intermediate_size", 9}}, {"experts"}}};
}

inline Outcome on_host(const ModelCase& model) {
  Steps steps(model.config);
  steps.adapters = model.adapters;
  return steps.run();
}

}  // namespace hearth::test
