// Counts which experts the tokens of a run went to. So the verdict can tell an expert without
// tokens from an expert that training missed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/state_registry.h"
#include "data/samples/sampler.h"
#include "model/spec.h"

namespace hearth {

/// Counts over all steps that changed weights. Part of the saved state, so a resumed run has them
/// too.
class Routing {
 public:
  explicit Routing(const ModelSpec& spec);

  /// Call after each such step. `expert_tokens`: per MoE layer, the tokens of each expert.
  void count(const std::vector<MicroBatch>& batches,
             const std::vector<std::vector<double>>& expert_tokens);
  /// Registers the component "routing". Loading an out-of-range count is a storage error.
  void register_state(StateRegistry& registry);

  int64_t updates() const { return counts_[0]; }
  int64_t tokens() const { return counts_[1]; }
  /// The MoE layers, ascending.
  const std::vector<int32_t>& layers() const { return layers_; }
  /// Tokens per expert of a MoE layer.
  std::span<const int64_t> experts(int32_t layer) const;
  /// Upper bound on the tokens that gave the experts of a layer no gradient, because no trained
  /// token depends on their output. In the last layer: tokens without a target. In others: tokens
  /// after the last target of their document.
  int64_t without_gradient(int32_t layer) const;

 private:
  int64_t experts_ = 0;
  int32_t last_layer_ = 0;
  std::vector<int32_t> layers_;
  std::vector<int64_t> tokens_;      // [MoE layers, experts]
  std::array<int64_t, 4> counts_{};  // updates; tokens: all, without target, after the last target
};

}  // namespace hearth
