// Which experts the tokens of a run went to. With it the verdict can tell an expert without tokens from
// a forgotten one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/state_registry.h"
#include "data/samples/sampler.h"
#include "model/spec.h"

namespace hearth {

/// Counts over all steps that changed weights. Part of the saved state, so a resumed run has them too.
class Routing {
 public:
  explicit Routing(const ModelSpec& spec);

  /// Call after each such step, with its micro-batches and, per MoE layer, the tokens per expert.
  void count(const std::vector<MicroBatch>& batches,
             const std::vector<std::vector<double>>& expert_tokens);
  /// Registers the component "routing". Loading counts out of range is a storage error.
  void register_state(StateRegistry& registry);

  int64_t updates() const { return counts_[0]; }
  int64_t tokens() const { return counts_[1]; }
  /// The MoE layers, ascending.
  const std::vector<int32_t>& layers() const { return layers_; }
  /// Tokens per expert of a MoE layer.
  std::span<const int64_t> experts(int32_t layer) const;
  /// At most so many tokens gave the experts of a layer no gradient, because no trained token depends
  /// on what the layer computes for them. In the last layer these are the tokens without a target, in
  /// the others the tokens after the last target of their document.
  int64_t without_gradient(int32_t layer) const;

 private:
  int64_t experts_ = 0;
  int32_t last_layer_ = 0;
  std::vector<int32_t> layers_;
  std::vector<int64_t> tokens_;      // [MoE layers, experts]
  std::array<int64_t, 4> counts_{};  // updates; tokens: all, without a target, after the last one
};

}  // namespace hearth
