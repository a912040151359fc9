#include "checkpoint/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.h"

namespace hearth {
namespace {

struct Architecture {
  const char* family;
  const char* name;
  bool normalizes;   // llama.cpp divides the combine weights by their sum
  bool qkv_bias;     // has biases of q, k and v
  bool needs_head;   // reads no tied head
  bool paired_rows;  // of q and k
};

constexpr Architecture kArchitectures[] = {
    {"mixtral", "llama", true, false, false, true},
    {"olmoe", "olmoe", false, false, true, false},
    {"qwen2_moe", "qwen2moe", false, true, false, false},
    {"qwen3_moe", "qwen3moe", true, false, false, false},
};

const Architecture& architecture_of(const ModelSpec& spec) {
  for (const Architecture& known : kArchitectures) {
    if (spec.family == known.family) return known;
  }
  throw input_error("the family " + quoted(spec.family) +
                    " has no GGUF form here; known are mixtral, olmoe, qwen2_moe and qwen3_moe");
}

// Names by slot; {name, always f32}.
const std::map<Slot, std::pair<const char*, bool>> kAttentionNames{
    {Slot::input_norm, {"attn_norm.weight", true}},
    {Slot::q, {"attn_q.weight", false}},
    {Slot::k, {"attn_k.weight", false}},
    {Slot::v, {"attn_v.weight", false}},
    {Slot::o, {"attn_output.weight", false}},
    {Slot::q_bias, {"attn_q.bias", true}},
    {Slot::k_bias, {"attn_k.bias", true}},
    {Slot::v_bias, {"attn_v.bias", true}},
    {Slot::q_norm, {"attn_q_norm.weight", true}},
    {Slot::k_norm, {"attn_k_norm.weight", true}},
    {Slot::post_norm, {"ffn_norm.weight", true}},
    {Slot::router, {"ffn_gate_inp.weight", true}}};
const std::map<Slot, std::pair<const char*, bool>> kSharedNames{
    {Slot::gate, {"ffn_gate_shexp.weight", false}},
    {Slot::up, {"ffn_up_shexp.weight", false}},
    {Slot::down, {"ffn_down_shexp.weight", false}},
    {Slot::shared_gate, {"ffn_gate_inp_shexp.weight", true}}};
const std::map<Slot, std::pair<const char*, bool>> kWholeNames{
    {Slot::embedding, {"token_embd.weight", false}},
    {Slot::final_norm, {"output_norm.weight", true}},
    {Slot::head, {"output.weight", false}}};
const std::pair<Slot, const char*> kExpertNames[] = {{Slot::gate, "ffn_gate_exps.weight"},
                                                     {Slot::up, "ffn_up_exps.weight"},
                                                     {Slot::down, "ffn_down_exps.weight"}};

class PartList {
 public:
  PartList(const ParameterTable& table, const ModelSpec& spec, GgufType type)
      : table_(table), spec_(spec), architecture_(architecture_of(spec)), type_(type) {}

  std::vector<GgufPart> make() {
    for (const Block& block : table_.blocks()) {
      if (block.kind == BlockKind::expert) {
        if (block.expert == 0) add_experts(block.layer);
        continue;
      }
      if (block.kind == BlockKind::adapter) continue;
      const auto& names = block.kind == BlockKind::shared ? kSharedNames
                          : block.layer >= 0              ? kAttentionNames
                                                          : kWholeNames;
      for (TensorId id = block.begin; id < block.end; ++id) {
        const auto found = names.find(table_.tensor(id).slot);
        HEARTH_CHECK(found != names.end(), "gguf: no name for " + table_.tensor(id).name);
        add(prefix(block.layer) + found->second.first, {id}, found->second.second);
      }
    }
    if (spec_.tied_head && architecture_.needs_head) {
      add("output.weight", {table_.head_weight()}, false);
    }
    return std::move(parts_);
  }

 private:
  static std::string prefix(int32_t layer) {
    return layer < 0 ? "" : "blk." + std::to_string(layer) + ".";
  }

  void add_experts(int32_t layer) {
    for (const auto& [slot, name] : kExpertNames) {
      std::vector<TensorId> parts;
      for (int64_t e = 0; e < spec_.experts; ++e) {
        const BlockId block = table_.find_block(BlockKind::expert, layer, static_cast<int32_t>(e));
        parts.push_back(*table_.find_slot(block, slot));
      }
      add(prefix(layer) + name, std::move(parts), false);
      parts_.back().tensor.shape.push_back(spec_.experts);
    }
  }

  void add(const std::string& name, std::vector<TensorId> ids, bool always_f32) {
    const Tensor& tensor = table_.tensor(ids[0]);
    GgufPart part;
    part.tensor = {name, {tensor.cols}, always_f32 ? GgufType::f32 : type_};
    if (!tensor.vector) part.tensor.shape.push_back(tensor.rows);
    if (part.tensor.type == GgufType::q8_0 && tensor.cols % kGgufBlock != 0) {
      part.tensor.type = GgufType::f16;
    }
    if (architecture_.paired_rows && tensor.slot == Slot::q) part.paired_heads = spec_.heads;
    if (architecture_.paired_rows && tensor.slot == Slot::k) part.paired_heads = spec_.kv_heads;
    part.parts = std::move(ids);
    parts_.push_back(std::move(part));
  }

  const ParameterTable& table_;
  const ModelSpec& spec_;
  const Architecture& architecture_;
  GgufType type_;
  std::vector<GgufPart> parts_;
};

/// The number of a file type (llama_ftype).
uint32_t file_type(GgufType type) {
  switch (type) {
    case GgufType::f32: return 0;
    case GgufType::f16: return 1;
    case GgufType::q8_0: return 7;
    case GgufType::bf16: return 32;
  }
  return 0;
}

}  // namespace

std::string gguf_architecture(const ModelSpec& spec) { return architecture_of(spec).name; }

void require_gguf_form(const ModelSpec& spec, const std::string& source) {
  const Architecture& known = architecture_of(spec);
  const auto refuse = [&](const std::string& what) {
    throw input_error(source + ": " + what + ", which llama.cpp's architecture " +
                      quoted(known.name) + " does not have; no GGUF file was written");
  };
  if (spec.moe_layers() < spec.layers) refuse("has layers without experts");
  if (spec.qkv_limit > 0) refuse("clamps q, k and v (clip_qkv)");
  if (spec.o_bias) refuse("has a bias on the output of attention");
  if (spec.qkv_bias && !known.qkv_bias) refuse("has biases on q, k and v");
}

std::vector<std::string> gguf_differences(const ModelSpec& spec) {
  const Architecture& known = architecture_of(spec);
  const std::string name = quoted(known.name);
  std::vector<std::string> found;
  if (spec.normalize_weights != known.normalizes) {
    found.push_back("llama.cpp computes something else: its architecture " + name +
                    (known.normalizes ? " always divides" : " never divides") +
                    " the weights of a token's experts by their sum, and norm_topk_prob is " +
                    (spec.normalize_weights ? "true" : "false"));
  }
  const auto cuts = [&](int64_t window) { return window > 0 && window < spec.max_positions; };
  if (std::any_of(spec.windows.begin(), spec.windows.end(), cuts)) {
    found.push_back(
        "llama.cpp computes something else beyond the window of attention: its "
        "architecture " +
        name + " has none");
  }
  return found;
}

void add_gguf_model(const ModelSpec& spec, GgufType type, GgufMetadata& metadata) {
  const std::string name = gguf_architecture(spec);
  const auto number = [&](const char* key, int64_t value) {
    metadata.add_u32(name + "." + key, static_cast<uint32_t>(value));
  };
  number("block_count", spec.layers);
  number("context_length", spec.max_positions);
  number("embedding_length", spec.hidden);
  const bool own_width = name == "llama" || name == "olmoe";  // experts have the only width
  const int64_t width = own_width ? spec.expert_width : spec.dense_width;
  if (width > 0) number("feed_forward_length", width);
  number("attention.head_count", spec.heads);
  number("attention.head_count_kv", spec.kv_heads);
  metadata.add_f32(name + ".rope.freq_base", static_cast<float>(spec.rope_theta));
  metadata.add_f32(name + ".attention.layer_norm_rms_epsilon", static_cast<float>(spec.norm_eps));
  number("expert_count", spec.experts);
  number("expert_used_count", spec.experts_per_token);
  number("attention.key_length", spec.head_dim);
  number("attention.value_length", spec.head_dim);
  metadata.add_u32("general.file_type", file_type(type));
  if (name == "llama") {
    number("vocab_size", spec.vocabulary);
    number("rope.dimension_count", spec.head_dim);
  }
  if (!own_width) number("expert_feed_forward_length", spec.expert_width);
  if (spec.shared_width > 0) number("expert_shared_feed_forward_length", spec.shared_width);
}

std::vector<GgufPart> gguf_parts(const ParameterTable& table, const ModelSpec& spec,
                                 GgufType type) {
  return PartList(table, spec, type).make();
}

std::string gguf_size_label(const ParameterTable& table, const ModelSpec& spec) {
  double parameters = 0;
  for (const Tensor& tensor : table.tensors()) {
    const Block& block = table.block(tensor.block);
    if (block.kind == BlockKind::adapter || block.expert > 0) continue;
    parameters += static_cast<double>(tensor.size());
  }
  const std::pair<double, char> scales[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}};
  double scaled = parameters / 1e3;
  char unit = 'K';
  for (const auto& [scale, letter] : scales) {
    if (parameters <= scale && letter != 'K') continue;
    scaled = parameters / scale;
    unit = letter;
    break;
  }
  char text[64];
  const double whole = std::nearbyint(scaled);
  const int digits = whole >= 10 ? 0 : whole >= 1 ? 1 : 2;
  std::snprintf(text, sizeof text, "%lldx%.*f%c", static_cast<long long>(spec.experts), digits,
                scaled, unit);
  return text;
}

}  // namespace hearth
