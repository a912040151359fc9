#include "model/families/decoder_family.h"

namespace hearth {
namespace {

/// Adds the blocks of one layer.
class LayerTable {
 public:
  LayerTable(ParameterTable& table, const ModelSpec& spec, int32_t layer)
      : table_(table),
        spec_(spec),
        layer_(layer),
        prefix_("model.layers." + std::to_string(layer) + ".") {}

  void add_attention() {
    const std::string attention = prefix_ + "self_attn.";
    const int64_t q = spec_.heads * spec_.head_dim, kv = spec_.kv_heads * spec_.head_dim;
    table_.add_block(BlockKind::attention, layer_);
    matrix(attention + "q_proj.weight", Slot::q, q, spec_.hidden);
    matrix(attention + "k_proj.weight", Slot::k, kv, spec_.hidden);
    matrix(attention + "v_proj.weight", Slot::v, kv, spec_.hidden);
    matrix(attention + "o_proj.weight", Slot::o, spec_.hidden, q);
    if (spec_.qkv_bias) {
      vector(attention + "q_proj.bias", Slot::q_bias, q);
      vector(attention + "k_proj.bias", Slot::k_bias, kv);
      vector(attention + "v_proj.bias", Slot::v_bias, kv);
    }
    if (spec_.o_bias) vector(attention + "o_proj.bias", Slot::o_bias, spec_.hidden);
    vector(prefix_ + "input_layernorm.weight", Slot::input_norm, spec_.hidden);
    if (spec_.qk_norm != QkNorm::none) {
      const bool whole = spec_.qk_norm == QkNorm::whole;
      vector(attention + "q_norm.weight", Slot::q_norm, whole ? q : spec_.head_dim);
      vector(attention + "k_norm.weight", Slot::k_norm, whole ? kv : spec_.head_dim);
    }
    vector(prefix_ + "post_attention_layernorm.weight", Slot::post_norm, spec_.hidden);
  }

  void add_dense() {
    table_.add_block(BlockKind::dense, layer_);
    add_mlp(prefix_ + "mlp.", {}, spec_.dense_width);
  }

  void add_experts(const ExpertNames& names) {
    const std::string part = prefix_ + names.part;
    table_.add_block(BlockKind::router, layer_);
    matrix(part + "gate.weight", Slot::router, spec_.experts, spec_.hidden);
    for (int64_t e = 0; e < spec_.experts; ++e) {
      table_.add_block(BlockKind::expert, layer_, static_cast<int32_t>(e));
      add_mlp(part + "experts." + std::to_string(e) + ".", names, spec_.expert_width);
    }
    if (spec_.shared_width == 0) return;
    table_.add_block(BlockKind::shared, layer_);
    add_mlp(part + "shared_expert.", names, spec_.shared_width);
    matrix(part + "shared_expert_gate.weight", Slot::shared_gate, 1, spec_.hidden);
  }

 private:
  void add_mlp(const std::string& prefix, const ExpertNames& names, int64_t width) {
    matrix(prefix + names.gate + ".weight", Slot::gate, width, spec_.hidden);
    matrix(prefix + names.up + ".weight", Slot::up, width, spec_.hidden);
    matrix(prefix + names.down + ".weight", Slot::down, spec_.hidden, width);
  }
  void matrix(const std::string& name, Slot slot, int64_t rows, int64_t cols) {
    table_.add_tensor(name, slot, rows, cols, false);
  }
  void vector(const std::string& name, Slot slot, int64_t n) {
    table_.add_tensor(name, slot, 1, n, true);
  }

  ParameterTable& table_;
  const ModelSpec& spec_;
  int32_t layer_;
  std::string prefix_;
};

}  // namespace

ParameterTable DecoderFamily::make_table(const ModelSpec& spec) const {
  const ExpertNames names = expert_names();
  ParameterTable table;
  table.add_block(BlockKind::embedding);
  table.add_tensor("model.embed_tokens.weight", Slot::embedding, spec.vocabulary, spec.hidden,
                   false);
  for (int64_t i = 0; i < spec.layers; ++i) {
    LayerTable layer(table, spec, static_cast<int32_t>(i));
    layer.add_attention();
    if (spec.has_experts(i)) {
      layer.add_experts(names);
    } else {
      layer.add_dense();
    }
  }
  table.add_block(BlockKind::head);
  if (!spec.tied_head) {
    table.add_tensor("lm_head.weight", Slot::head, spec.vocabulary, spec.hidden, false);
  }
  table.add_tensor("model.norm.weight", Slot::final_norm, 1, spec.hidden, true);
  return table;
}

bool DecoderFamily::ignores(const std::string& tensor) const {
  return tensor.ends_with("rotary_emb.inv_freq") || tensor.starts_with("mtp.");
}

std::string DecoderFamily::tied_source(const ModelSpec& spec, const std::string& tensor) const {
  return spec.tied_head && tensor == "lm_head.weight" ? "model.embed_tokens.weight" : "";
}

int64_t DecoderFamily::tensor_count(const ModelSpec& spec) const {
  const int64_t attention =
      6 + (spec.qk_norm != QkNorm::none ? 2 : 0) + (spec.qkv_bias ? 3 : 0) + (spec.o_bias ? 1 : 0);
  const int64_t experts = 1 + 3 * spec.experts + (spec.shared_width > 0 ? 4 : 0);
  return 2 + (spec.tied_head ? 0 : 1) + spec.layers * attention + spec.moe_layers() * experts +
         (spec.layers - spec.moe_layers()) * 3;
}

}  // namespace hearth
