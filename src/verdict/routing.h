// Which experts the tokens of a run went to: what the verdict needs to tell an expert that no token
// reached from one that was forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/state_registry.h"
#include "data/samples/sampler.h"
#include "model/spec.h"

namespace hearth {

/// Counts over all steps that changed weights; part of the saved state, so that a resumed run knows
/// them, too.
class Routing {
 public:
  explicit Routing(const ModelSpec& spec);

  /// After such a step: its micro-batches, and of every MoE layer the tokens that each expert got.
  void count(const std::vector<MicroBatch>& batches,
             const std::vector<std::vector<double>>& expert_tokens);
  /// The component "routing". Storage error of a load whose counts are no counts.
  void register_state(StateRegistry& registry);

  int64_t updates() const { return counts_[0]; }
  int64_t tokens() const { return counts_[1]; }
  /// The MoE layers, ascending.
  const std::vector<int32_t>& layers() const { return layers_; }
  /// Tokens by expert of a MoE layer.
  std::span<const int64_t> experts(int32_t layer) const;
  /// Tokens at most that gave the experts of a layer no gradient: no trained token depends on what
  /// the layer makes of them. In the last layer those without a target, in the others those behind
  /// the last target of their document.
  int64_t without_gradient(int32_t layer) const;

 private:
  int64_t experts_ = 0;
  int32_t last_layer_ = 0;
  std::vector<int32_t> layers_;
  std::vector<int64_t> tokens_;      // [MoE layers, experts]
  std::array<int64_t, 4> counts_{};  // updates, tokens, those without a target, those behind all
};

}  // namespace hearth
