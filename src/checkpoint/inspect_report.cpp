#include "checkpoint/inspect_report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/counted.h"

namespace hearth {
namespace {

std::string line(const ParameterGroup& group) {
  char text[160];
  std::snprintf(text, sizeof text, "%-10s %8lld %9lld %16lld %16lld %18lld  ", group.name.c_str(),
                static_cast<long long>(group.blocks), static_cast<long long>(group.tensors),
                static_cast<long long>(group.parameters), static_cast<long long>(group.trained),
                static_cast<long long>(group.bytes));
  return text + group.types + "\n";
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
         (full > 0 ? " in " + counted(spec.layers - full, "layer") : "");
}

const char* layout_name(ExpertLayout layout) {
  switch (layout) {
    case ExpertLayout::per_expert: return "per-expert";
    case ExpertLayout::fused: return "fused";
    case ExpertLayout::mixed: return "mixed";
  }
  return "";
}

/// "model.layers.12.mlp" -> "model.layers.*.mlp".
std::string without_numbers(const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (begin > 0 ? "." : "") + (number ? "*" : part);
    begin = end + 1;
  }
  return out;
}

/// A line for the tensors whose names differ in numbers alone, of one type and shape, all or none
/// of them trained. Its name is a
/// glob of --trainable and --freeze.
std::string tensor_listing(const std::vector<StoredTensorInfo>& tensors) {
  struct Line {
    std::string name, shape, type;
    bool trained = true;
    int64_t count = 0;
  };
  std::vector<Line> lines;
  std::map<std::string, size_t> known;
  size_t name_width = 6, shape_width = 5;
  for (const StoredTensorInfo& tensor : tensors) {
    const std::string name = without_numbers(tensor.name), shape = shape_text(tensor.shape);
    const auto [at, is_new] = known.emplace(
        name + " " + shape + tensor.type + (tensor.trained ? "+" : "-"), lines.size());
    if (is_new) lines.push_back({name, shape, tensor.type, tensor.trained});
    ++lines[at->second].count;
    name_width = std::max(name_width, name.size());
    shape_width = std::max(shape_width, shape.size());
  }
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
  };
  std::string out =
      padded("tensor", name_width) + "  " + padded("shape", shape_width) + "  type   count\n";
  for (const Line& l : lines) {
    out += padded(l.name, name_width) + "  " + padded(l.shape, shape_width) + "  " +
           padded(l.type, 4) + "  " + std::to_string(l.count) + (l.trained ? "" : "  frozen") +
           "\n";
  }
  return out;
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  const ModelSpec& s = inspection.spec;
  const auto n = [](int64_t x) { return std::to_string(x); };
  std::string out = s.family + ", " + short_count(inspection.parameters) + " parameters, " +
                    short_count(inspection.active_parameters) + " active per token, " +
                    counted(inspection.files, "file") + "\n";
  out += "vocabulary " + n(s.vocabulary) + ", hidden " + n(s.hidden) + ", layers " + n(s.layers) +
         " (" + n(s.moe_layers()) + " with experts), positions " + n(s.max_positions) + "\n";
  out += "heads " + n(s.heads) + "/" + n(s.kv_heads) + " of " + n(s.head_dim) +
         (s.qkv_bias ? ", biases" : "") + window_text(s) + ", rope theta " +
         Json(s.rope_theta).dump() + (s.tied_head ? ", tied head" : "") + "\n";
  out += "experts " + n(s.experts) + ", " + n(s.experts_per_token) + " per token, width " +
         n(s.expert_width) + (s.normalize_weights ? ", weights normalized" : "") +
         (s.shared_width > 0 ? "; shared width " + n(s.shared_width) : "") +
         (s.moe_layers() < s.layers ? "; dense width " + n(s.dense_width) : "") + "; stored " +
         layout_name(inspection.experts) + "\n\n";
  char head[160];
  std::snprintf(head, sizeof head, "%-10s %8s %9s %16s %16s %18s  %s\n", "group", "blocks",
                "tensors", "parameters", "trained", "bytes", "stored as");
  out += head;
  ParameterGroup all{
      "all", 0, 0, inspection.parameters, inspection.trained_parameters, inspection.bytes, ""};
  for (const ParameterGroup& g : inspection.groups) {
    out += line(g);
    all.blocks += g.blocks;
    all.tensors += g.tensors;
  }
  out += line(all);
  return out + "\n" + tensor_listing(inspection.tensors);
}

Json inspection_json(const Inspection& inspection) {
  const ModelSpec& s = inspection.spec;
  JsonArray groups, windows, tensors;
  for (const int64_t window : s.windows) windows.push_back(window);
  for (const ParameterGroup& g : inspection.groups) {
    groups.push_back(JsonObject{{"name", g.name},
                                {"blocks", g.blocks},
                                {"tensors", g.tensors},
                                {"parameters", g.parameters},
                                {"trained", g.trained},
                                {"bytes", g.bytes},
                                {"types", g.types}});
  }
  for (const StoredTensorInfo& tensor : inspection.tensors) {
    JsonArray shape(tensor.shape.begin(), tensor.shape.end());
    tensors.push_back(JsonObject{{"name", tensor.name},
                                 {"type", tensor.type},
                                 {"shape", Json(std::move(shape))},
                                 {"trained", tensor.trained}});
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
                    {"trained_parameters", inspection.trained_parameters},
                    {"bytes", inspection.bytes},
                    {"files", inspection.files},
                    {"expert_layout", layout_name(inspection.experts)},
                    {"sizes", std::move(sizes)},
                    {"groups", std::move(groups)},
                    {"tensors", std::move(tensors)}};
}

}  // namespace hearth
