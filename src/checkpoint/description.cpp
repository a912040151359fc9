#include "checkpoint/description.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/file_ops.h"
#include "checkpoint/model_files.h"
#include "checkpoint/weight_index.h"

namespace hearth {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

/// Bytes of all weights as the index gives them; 0 if it does not.
int64_t total_size(const std::string& index_text, const std::string& path) {
  const Json index = parse_json(index_text, path);
  const Json* metadata = index.find("metadata");
  const Json* size = metadata && metadata->is_object() ? metadata->find("total_size") : nullptr;
  return size && size->is_signed() ? size->as_int() : 0;
}

std::string two_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

}  // namespace

bool weights_are_absent(const std::string& directory) {
  if (file_info(directory).kind != FileKind::directory) return false;
  if (has_model_file(directory, "model.safetensors")) return false;
  if (has_model_file(directory, kIndexName)) {
    const std::string path = directory + "/" + kIndexName;
    std::set<std::string> shards;
    for (const auto& [tensor, file] :
         parse_weight_index(read_text_file(path, kMaxIndexBytes), path)) {
      shards.insert(file);
    }
    return std::any_of(shards.begin(), shards.end(),
                       [&](const std::string& shard) { return !has_model_file(directory, shard); });
  }
  const std::vector<std::string> names = list_directory(directory);
  return std::none_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".bin") || name.ends_with(".bin.index.json") || name.ends_with(".pth");
  });
}

ModelDescription describe_model(const std::string& directory, bool follow_links) {
  const std::string path = model_file(directory, "config.json", follow_links);
  const Json config = read_json_file(path, kMaxConfigBytes);
  ModelDescription model;
  model.family = &family_of(config, path);
  model.spec = model.family->read_config(config, path);
  model.table = model.family->make_table(model.spec);
  int64_t parameters = 0;
  for (const Tensor& t : model.table.tensors()) parameters += t.size();

  const std::optional<DType> named = config_dtype(config, path);
  DType type = named.value_or(DType::f32);
  model.types_basis = named ? "config.json's dtype" : "config.json names no dtype: float32";
  std::set<std::string> stored;
  if (has_model_file(directory, kIndexName)) {
    const std::string index_path = model_file(directory, kIndexName, follow_links);
    const std::string text = read_text_file(index_path, kMaxIndexBytes);
    for (auto& [tensor, file] : parse_weight_index(text, index_path)) stored.insert(tensor);
    const int64_t bytes = total_size(text, index_path);
    const double each = static_cast<double>(bytes) / static_cast<double>(parameters);
    if (bytes > 0) {
      if (each < 3 && size_of(type) != 2) type = DType::bf16;
      if (each >= 3 && size_of(type) != 4) type = DType::f32;
      model.types_basis = "the index: " + two_digits(each) + " bytes per parameter";
    }
  }
  for (Tensor& t : model.table.tensors()) t.stored = type;
  model.layout = PublishedLayout(
      model.table, *model.family, [&](const std::string& name) { return stored.contains(name); },
      directory);
  return model;
}

}  // namespace hearth
