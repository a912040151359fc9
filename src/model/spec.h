// ModelSpec: the dimensions and switches of a model. A family makes it from config.json; nothing
// above the family knows a published key or name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

/// RMSNorm of q and k before rope, over each head or over a whole projection.
enum class QkNorm : uint8_t { none, head, whole };

struct ModelSpec {
  std::string family;  // model_type

  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  double norm_eps = 0;
  bool tied_head = false;  // the head reads the embedding's table
  int64_t max_positions = 0;
  double initializer_range = 0.02;
  /// Row of the embedding that gets no gradient from lookups (torch's padding_idx); -1: none.
  int64_t padding_id = -1;

  // Attention.
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;  // need not be hidden / heads
  QkNorm qk_norm = QkNorm::none;
  double qkv_limit = 0;  // q, k and v are clamped to [-limit, limit] before rope; 0: no clamp
  bool qkv_bias = false;
  bool o_bias = false;
  std::vector<int64_t> windows;  // by layer; 0: full causal attention
  double rope_theta = 0;

  // Feed-forward part: routed experts if moe[layer], else a dense MLP.
  std::vector<bool> moe;
  int64_t dense_width = 0;
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  int64_t expert_width = 0;
  int64_t shared_width = 0;        // of the shared expert, which every token visits; 0: none
  bool normalize_weights = false;  // combine weights are divided by their sum (norm_topk_prob)
  double aux_loss = 0;             // coefficient of the auxiliary loss in config.json

  std::vector<int64_t> eos_ids;

  int64_t moe_layers() const;
  /// Whether the layer has routed experts; whether it also has a shared expert. False if there is
  /// no such layer.
  bool has_experts(int64_t layer) const;
  bool has_shared_expert(int64_t layer) const { return shared_width > 0 && has_experts(layer); }
};

}  // namespace hearth
