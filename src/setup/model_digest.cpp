#include "setup/model_digest.h"

#include <bit>

namespace hearth {

Digest model_digest(const OpenedModel& model) {
  const ModelSpec& spec = model.spec;
  Hasher hasher;
  hasher.update_field(spec.family);
  const auto add = [&](int64_t n) { hasher.update_u64(static_cast<uint64_t>(n)); };
  for (const int64_t n :
       {spec.vocabulary, spec.hidden, spec.layers, static_cast<int64_t>(spec.tied_head),
        spec.padding_id, spec.heads, spec.kv_heads, spec.head_dim,
        static_cast<int64_t>(spec.qk_norm), static_cast<int64_t>(spec.qkv_bias),
        static_cast<int64_t>(spec.o_bias), spec.dense_width, spec.experts, spec.experts_per_token,
        spec.expert_width, spec.shared_width, static_cast<int64_t>(spec.normalize_weights)}) {
    add(n);
  }
  for (const double x : {spec.norm_eps, spec.qkv_limit, spec.rope_theta, spec.aux_loss}) {
    hasher.update_u64(std::bit_cast<uint64_t>(x));
  }
  add(std::ssize(spec.windows));
  for (const int64_t window : spec.windows) add(window);
  add(std::ssize(spec.moe));
  for (const bool moe : spec.moe) add(moe ? 1 : 0);
  for (const Tensor& t : model.base.tensors()) {
    hasher.update_field(t.name);
    add(t.rows);
    add(t.cols);
  }
  return hasher.digest();
}

}  // namespace hearth
