// Models of every kind of block, for tests that compare where their steps run.
#pragma once

#include <string>
#include <vector>

#include "modes/pipeline.h"
#include "runtime/steps.h"
#include "support/tiny_places.h"

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

/// Steps on one or two devices, whose weights all live on the host: `spare` and `ahead` as Travelling has
/// them.
inline Steps travelling_steps(const ModelCase& model, int devices, double spare, uint64_t ahead) {
  Steps steps(model.config);
  steps.adapters = model.adapters;
  steps.places = {virtual_devices(devices), {}};
  Travelling travelling;
  travelling.spare = spare;
  travelling.ahead_bytes = ahead;
  if (devices == 2) {
    travelling.stages = {{1, -1, 0}, {2, 1, 9}};
    steps.planner = &pipeline_planner();
    steps.places.host_lanes = 2;
  }
  steps.travelling = travelling;
  return steps;
}

}  // namespace hearth::test
