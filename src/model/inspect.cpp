#include "model/inspect.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace hearth {
namespace {

constexpr const char* kGroupNames[] = {"embedding", "attention", "gate", "expert",
                                       "shared",    "dense",     "head"};

std::string line(const char* name, int64_t blocks, int64_t tensors, int64_t parameters,
                 int64_t bytes, const std::string& types) {
  char text[160];
  std::snprintf(text, sizeof text, "%-10s %8lld %9lld %16lld %18lld  ", name,
                static_cast<long long>(blocks), static_cast<long long>(tensors),
                static_cast<long long>(parameters), static_cast<long long>(bytes));
  return text + types + "\n";
}

/// "30.53 B", "12.3 M", "4096".
std::string short_count(int64_t n) {
  char text[32];
  const auto x = static_cast<double>(n);
  if (n >= 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.2f B", x / 1e9);
  } else if (n >= 1'000'000) {
    std::snprintf(text, sizeof text, "%.1f M", x / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(n));
  }
  return text;
}

/// ", window 4096" or ", window 4096 in 3 layers".
std::string window_text(const ModelSpec& spec) {
  const auto full = std::count(spec.windows.begin(), spec.windows.end(), 0);
  if (full == spec.layers) return "";
  const int64_t window = *std::max_element(spec.windows.begin(), spec.windows.end());
  return ", window " + std::to_string(window) +
         (full > 0 ? " in " + std::to_string(spec.layers - full) + " layers" : "");
}

}  // namespace

Inspection inspect_checkpoint(const Checkpoint& checkpoint) {
  const ParameterTable table = checkpoint.make_table();
  const ModelSpec& spec = checkpoint.spec();
  Inspection out;
  out.spec = spec;
  out.files = static_cast<int64_t>(checkpoint.files().size());
  std::vector<std::set<std::string>> types(std::size(kGroupNames));
  std::vector<ParameterGroup> groups(std::size(kGroupNames));
  int64_t idle = 0;  // parameters of the experts that a token does not visit
  for (const Block& block : table.blocks()) {
    const auto kind = static_cast<size_t>(block.kind);
    ParameterGroup& group = groups[kind];
    ++group.blocks;
    int64_t parameters = 0;
    for (TensorId id = block.begin; id < block.end; ++id) {
      const Tensor& tensor = table.tensor(id);
      parameters += tensor.size();
      group.bytes += tensor.size() * static_cast<int64_t>(size_of(tensor.stored));
      types[kind].insert(safetensors_name(tensor.stored));
    }
    group.tensors += block.end - block.begin;
    group.parameters += parameters;
    const bool visited = block.kind != BlockKind::expert || block.expert < spec.experts_per_token;
    if (!visited) idle += parameters;
  }
  for (size_t kind = 0; kind < groups.size(); ++kind) {
    ParameterGroup& group = groups[kind];
    if (group.blocks == 0) continue;
    group.name = kGroupNames[kind];
    for (const std::string& type : types[kind]) {
      group.types += (group.types.empty() ? "" : ", ") + type;
    }
    out.parameters += group.parameters;
    out.bytes += group.bytes;
    out.groups.push_back(group);
  }
  out.active_parameters = out.parameters - idle;
  return out;
}

Hasher tensor_hasher(const std::string& name, const std::string& type,
                     const std::vector<int64_t>& shape) {
  Hasher hasher;
  hasher.update_field(name);
  hasher.update_field(type);
  hasher.update_u64(shape.size());
  for (const int64_t size : shape) hasher.update_u64(static_cast<uint64_t>(size));
  return hasher;
}

ContentDigest content_digest(std::vector<std::pair<std::string, Digest>> tensors) {
  ContentDigest out;
  out.tensors = std::move(tensors);
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Hasher root;
  for (const auto& [name, digest] : out.tensors) {
    root.update_field(name);
    root.update_u64(digest.high);
    root.update_u64(digest.low);
  }
  out.root = root.digest();
  return out;
}

ContentDigest digest_checkpoint(const Checkpoint& checkpoint) {
  std::vector<std::byte> buffer(size_t{4} << 20);
  std::vector<std::pair<std::string, Digest>> tensors;
  for (const auto& file : checkpoint.files()) {
    for (const SafetensorsEntry& entry : file->header().entries) {
      Hasher hasher = tensor_hasher(entry.name, entry.dtype, entry.shape);
      const uint64_t size = entry.end - entry.begin;
      for (uint64_t at = 0; at < size; at += buffer.size()) {
        const auto bytes = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size - at));
        file->read(entry, buffer.data(), bytes, at);
        hasher.update(buffer.data(), bytes);
      }
      tensors.emplace_back(entry.name, hasher.digest());
    }
  }
  return content_digest(std::move(tensors));
}

std::string inspection_text(const Inspection& inspection) {
  const ModelSpec& s = inspection.spec;
  const auto n = [](int64_t x) { return std::to_string(x); };
  std::string out = s.family + ", " + short_count(inspection.parameters) + " parameters, " +
                    short_count(inspection.active_parameters) + " active a token, " +
                    n(inspection.files) + (inspection.files == 1 ? " file\n" : " files\n");
  out += "vocabulary " + n(s.vocabulary) + ", hidden " + n(s.hidden) + ", layers " + n(s.layers) +
         " (" + n(s.moe_layers()) + " with experts), positions " + n(s.max_positions) + "\n";
  out += "heads " + n(s.heads) + "/" + n(s.kv_heads) + " of " + n(s.head_dim) +
         (s.qkv_bias ? ", biases" : "") + window_text(s) + ", rope theta " +
         Json(s.rope_theta).dump() + (s.tied_head ? ", tied head" : "") + "\n";
  out += "experts " + n(s.experts) + ", " + n(s.experts_per_token) + " a token, width " +
         n(s.expert_width) + (s.normalize_weights ? ", weights normalized" : "") +
         (s.shared_width > 0 ? "; shared width " + n(s.shared_width) : "") +
         (s.moe_layers() < s.layers ? "; dense width " + n(s.dense_width) : "") + "\n\n";
  char head[160];
  std::snprintf(head, sizeof head, "%-10s %8s %9s %16s %18s  %s\n", "group", "blocks", "tensors",
                "parameters", "bytes", "stored as");
  out += head;
  int64_t blocks = 0, tensors = 0;
  for (const ParameterGroup& g : inspection.groups) {
    out += line(g.name.c_str(), g.blocks, g.tensors, g.parameters, g.bytes, g.types);
    blocks += g.blocks;
    tensors += g.tensors;
  }
  return out + line("all", blocks, tensors, inspection.parameters, inspection.bytes, "");
}

Json inspection_json(const Inspection& inspection) {
  const ModelSpec& s = inspection.spec;
  JsonArray groups, windows;
  for (const int64_t window : s.windows) windows.push_back(window);
  for (const ParameterGroup& g : inspection.groups) {
    groups.push_back(JsonObject{{"name", g.name},
                                {"blocks", g.blocks},
                                {"tensors", g.tensors},
                                {"parameters", g.parameters},
                                {"bytes", g.bytes},
                                {"types", g.types}});
  }
  Json sizes(JsonObject{{"vocabulary", s.vocabulary},
                        {"hidden", s.hidden},
                        {"layers", s.layers},
                        {"moe_layers", s.moe_layers()},
                        {"max_positions", s.max_positions},
                        {"heads", s.heads},
                        {"kv_heads", s.kv_heads},
                        {"head_dim", s.head_dim},
                        {"attention_bias", s.qkv_bias},
                        {"windows", std::move(windows)},
                        {"rope_theta", s.rope_theta},
                        {"norm_eps", s.norm_eps},
                        {"tied_head", s.tied_head},
                        {"experts", s.experts},
                        {"experts_per_token", s.experts_per_token},
                        {"expert_width", s.expert_width},
                        {"shared_width", s.shared_width},
                        {"dense_width", s.dense_width},
                        {"normalize_weights", s.normalize_weights}});
  return JsonObject{{"kind", "checkpoint"},
                    {"family", s.family},
                    {"parameters", inspection.parameters},
                    {"active_parameters", inspection.active_parameters},
                    {"bytes", inspection.bytes},
                    {"files", inspection.files},
                    {"sizes", std::move(sizes)},
                    {"groups", std::move(groups)}};
}

Json digest_json(const ContentDigest& digest) {
  JsonObject tensors;
  for (const auto& [name, value] : digest.tensors) tensors.emplace_back(name, value.hex());
  return JsonObject{{"digest", std::move(tensors)}, {"root", digest.root.hex()}};
}

std::string digest_text(const ContentDigest& digest) {
  std::string out;
  for (const auto& [name, value] : digest.tensors) out += value.hex() + "  " + name + "\n";
  return out + digest.root.hex() + "  root\n";
}

}  // namespace hearth
