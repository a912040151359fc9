#include "peft/inspect.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "checkpoint/model_files.h"
#include "peft/check.h"
#include "peft/names.h"
#include "peft/tensors.h"

namespace hearth {
namespace {

constexpr const char* kOrder[] = {"embedding", "attention", "router", "experts", "shared-experts",
                                  "dense",     "norms",     "head",   "other"};

/// By the names of the families. What stands first wins: "self_attn.q_norm" is a norm.
std::string_view group_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> kParts[] = {{"norm", "norms"},
                                                            {"embed_tokens", "embedding"},
                                                            {"lm_head", "head"},
                                                            {".self_attn.", "attention"},
                                                            {"shared_expert", "shared-experts"},
                                                            {".experts.", "experts"},
                                                            {".gate.", "router"},
                                                            {"_proj.", "dense"}};
  for (const auto& [part, group] : kParts) {
    if (name.find(part) != std::string::npos) return group;
  }
  return "other";
}

const char* layout_of(const SafetensorsHeader& header) {
  constexpr std::string_view kExperts = ".experts.";
  for (const SafetensorsEntry& entry : header.entries) {
    const size_t at = entry.name.find(kExperts);
    if (at == std::string::npos) continue;
    const char next = entry.name[at + kExperts.size()];
    return std::isdigit(static_cast<unsigned char>(next)) ? "per-expert" : "fused";
  }
  return "none";
}

Json setting(const Json& settings, const char* key) {
  const Json* value = settings.find(key);
  return value != nullptr ? *value : Json(nullptr);
}

void add(AdapterGroup& group, const SafetensorsEntry& entry) {
  const auto bytes = static_cast<int64_t>(entry.end - entry.begin);
  int64_t parameters = 1;
  for (const int64_t size : entry.shape) parameters *= size;
  ++group.tensors;
  group.parameters += parameters;
  group.bytes += bytes;
}

}  // namespace

AdapterInspection inspect_adapter(const std::string& directory, bool follow_links) {
  const AdapterConfig config = open_adapter_config(directory, follow_links);
  const SafetensorsFile file = open_adapter_weights(directory, follow_links);
  check_adapter_names(file);
  const AdapterNotes notes(file.header(), file.path());
  const Json settings = read_json_file(config.source(), kMaxConfigBytes);
  AdapterInspection out;
  out.rank = config.rank();
  out.alpha = config.alpha();
  out.rslora = config.rslora();
  const auto rank = static_cast<double>(out.rank);
  out.scale = out.alpha / (out.rslora ? std::sqrt(rank) : rank);
  out.layout = layout_of(file.header());
  out.base_name = config.base_model();
  out.base_digest = notes.base;
  out.target_modules = setting(settings, "target_modules");
  out.target_parameters = setting(settings, "target_parameters");
  out.modules_to_save = setting(settings, "modules_to_save");
  out.rank_pattern = setting(settings, "rank_pattern");
  out.alpha_pattern = setting(settings, "alpha_pattern");
  out.without_pair = std::count_if(notes.ranks.begin(), notes.ranks.end(),
                                   [](const auto& noted) { return noted.second == 0; });
  std::map<std::string_view, AdapterGroup> groups;
  std::map<std::string_view, std::set<std::string>> types;
  for (const SafetensorsEntry& entry : file.header().entries) {
    const std::string_view name = group_of(entry.name);
    add(groups[name], entry);
    add(out.all, entry);
    types[name].insert(entry.dtype);
  }
  out.all.name = "all";
  for (const char* name : kOrder) {
    const auto found = groups.find(name);
    if (found == groups.end()) continue;
    AdapterGroup& group = found->second;
    group.name = name;
    for (const std::string& type : types[name]) {
      group.types += (group.types.empty() ? "" : ", ") + type;
    }
    out.groups.push_back(group);
  }
  return out;
}

namespace {

std::string line(const AdapterGroup& group) {
  char text[128];
  std::snprintf(text, sizeof text, "%-14s %9lld %16lld %18lld  ", group.name.c_str(),
                static_cast<long long>(group.tensors), static_cast<long long>(group.parameters),
                static_cast<long long>(group.bytes));
  return text + group.types + "\n";
}

/// "q_proj, v_proj", or the pattern; nothing where nothing is set.
std::string listed(const Json& value) {
  if (value.is_string()) return value.as_string();
  std::string text;
  if (value.is_object()) {
    for (const auto& [name, of] : value.as_object()) {
      text += (text.empty() ? "" : ", ") + name + ": " + of.dump();
    }
  }
  if (value.is_array()) {
    for (const Json& item : value.as_array()) {
      text += (text.empty() ? "" : ", ") + item.as_string();
    }
  }
  return text;
}

}  // namespace

std::string inspection_text(const AdapterInspection& inspection) {
  const AdapterInspection& i = inspection;
  const auto x = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return std::string(text);
  };
  std::string out = "adapter (PEFT, LoRA): rank " + std::to_string(i.rank) + ", alpha " +
                    x(i.alpha) + (i.rslora ? " (rsLoRA)" : "") + ", scale " + x(i.scale) +
                    "; experts " + (i.layout == "none" ? "not adapted" : i.layout) + "\n";
  out += "base " + (i.base_name.empty() ? std::string("not named") : i.base_name) + ", digest " +
         (i.base_digest ? i.base_digest->hex() : std::string("not noted")) + "\n";
  const std::pair<const char*, const Json*> kSettings[] = {
      {"target_modules", &i.target_modules},
      {"target_parameters", &i.target_parameters},
      {"modules_to_save", &i.modules_to_save},
      {"rank_pattern", &i.rank_pattern},
      {"alpha_pattern", &i.alpha_pattern}};
  for (const auto& [name, value] : kSettings) {
    const std::string text = listed(*value);
    if (!text.empty()) out += std::string(name) + " " + text + "\n";
  }
  if (i.without_pair > 0) {
    out += std::to_string(i.without_pair) + " matrices have no pair: zeros in the file\n";
  }
  char head[128];
  std::snprintf(head, sizeof head, "\n%-14s %9s %16s %18s  %s\n", "group", "tensors", "parameters",
                "bytes", "stored as");
  out += head;
  for (const AdapterGroup& group : i.groups) out += line(group);
  return out + line(i.all);
}

Json inspection_json(const AdapterInspection& inspection) {
  const AdapterInspection& i = inspection;
  JsonArray groups;
  for (const AdapterGroup& group : i.groups) {
    groups.push_back(JsonObject{{"name", group.name},
                                {"tensors", group.tensors},
                                {"parameters", group.parameters},
                                {"bytes", group.bytes},
                                {"types", group.types}});
  }
  return JsonObject{{"kind", "adapter"},
                    {"rank", i.rank},
                    {"alpha", i.alpha},
                    {"scale", i.scale},
                    {"rslora", i.rslora},
                    {"expert_layout", i.layout},
                    {"base", i.base_name},
                    {"base_digest", i.base_digest ? Json(i.base_digest->hex()) : Json(nullptr)},
                    {"target_modules", i.target_modules},
                    {"target_parameters", i.target_parameters},
                    {"modules_to_save", i.modules_to_save},
                    {"rank_pattern", i.rank_pattern},
                    {"alpha_pattern", i.alpha_pattern},
                    {"without_pair", i.without_pair},
                    {"tensors", i.all.tensors},
                    {"parameters", i.all.parameters},
                    {"bytes", i.all.bytes},
                    {"groups", std::move(groups)}};
}

}  // namespace hearth
