#include "checkpoint/weight_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace hearth {
namespace {

bool is_plain_name(const std::string& name) {
  constexpr size_t kMaxName = 255;
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
         });
}

void check_file_name(const std::string& file, const std::string& tensor,
                     const std::string& source) {
  const auto where = [&] { return source + ": weight_map of tensor " + quoted(tensor); };
  for (const char* ending : {".bin", ".pt", ".pth", ".pkl"}) {
    if (file.ends_with(ending)) {
      throw input_error(where() + " names the pickle " + quoted(file) +
                        ", which can run code when it is read; convert the checkpoint with "
                        "save_pretrained(..., safe_serialization=True)");
    }
  }
  constexpr std::string_view kEnding = ".safetensors";
  if (!is_plain_name(file) || !file.ends_with(kEnding)) {  // the ending alone is none
    throw input_error(where() + " names " + quoted(file) +
                      "; expected a plain file name that ends in .safetensors");
  }
}

}  // namespace

WeightMap parse_weight_index(std::string_view text, const std::string& source) {
  const Json index = parse_json(text, source);
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object() || map->as_object().empty()) {
    throw input_error(source + ": expected an object with a \"weight_map\" of tensors to files");
  }
  WeightMap out;
  out.reserve(map->as_object().size());
  for (const auto& [tensor, file] : map->as_object()) {
    if (!file.is_string()) {
      throw input_error(source + ": weight_map of tensor " + quoted(tensor) +
                        ": expected a file name");
    }
    check_file_name(file.as_string(), tensor, source);
    out.emplace_back(tensor, file.as_string());
  }
  return out;
}

std::string weight_index_text(WeightMap map, int64_t parameters, int64_t bytes) {
  std::sort(map.begin(), map.end());
  JsonObject files;
  for (auto& [tensor, file] : map) files.emplace_back(std::move(tensor), std::move(file));
  const Json index(
      JsonObject{{"metadata", JsonObject{{"total_parameters", parameters}, {"total_size", bytes}}},
                 {"weight_map", std::move(files)}});
  return index.dump(2) + "\n";
}

}  // namespace hearth
