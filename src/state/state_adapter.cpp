#include "state/state_adapter.h"

#include <map>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "peft/modules.h"
#include "peft/names.h"

namespace hearth {
namespace {

/// The number of a member; an input error naming `source` if there is none.
double scale_in(const Json& json, const std::string& key, const std::string& source) {
  const Json* value = json.is_object() ? json.find(key) : nullptr;
  if (value != nullptr && value->is_number()) return value->as_double();
  throw input_error(source + ": the state has no adapter scale " + quoted(key));
}

double scale_of(const Json& scales, const std::string& block, const std::string& source) {
  const Json* others = scales.is_object() ? scales.find("scales") : nullptr;
  const bool has_own = others != nullptr && others->is_object() && others->find(block) != nullptr;
  return has_own ? scale_in(*others, block, source) : scale_in(scales, "scale", source);
}

}  // namespace

Json adapter_scales(const ParameterTable& table) {
  std::map<double, int64_t> blocks;
  for (const Block& block : table.blocks()) {
    if (block.kind == BlockKind::adapter) ++blocks[block.scale];
  }
  double most = 0;
  int64_t count = 0;
  for (const auto& [scale, of_scale] : blocks) {
    if (of_scale > count) most = scale;
    count = std::max(count, of_scale);
  }
  JsonObject others;
  for (const Block& block : table.blocks()) {
    if (block.kind != BlockKind::adapter || block.scale == most) continue;
    others.emplace_back(table.tensor(block.begin).name, block.scale);
  }
  return JsonObject{{"scale", most}, {"scales", std::move(others)}};
}

ParameterTable saved_adapters(const Checkpoint& base, std::span<const SafetensorsFile> weights,
                              const Json& scales) {
  ParameterTable table = base.make_table();
  struct Saved {
    const SafetensorsEntry& entry;
    const std::string& path;
  };
  std::unordered_map<std::string, Saved> entries;
  for (const SafetensorsFile& file : weights) {
    for (const SafetensorsEntry& entry : file.header().entries) {
      entries.emplace(entry.name, Saved{entry, file.path()});
      const auto trained = table.find(entry.name);
      if (trained) table.tensor(*trained).trainable = true;
    }
  }
  const auto refuse_unfit = [&](const Saved& saved) {
    throw input_error(saved.path + ": tensor " + quoted(saved.entry.name) + " of shape " +
                      shape_text(saved.entry.shape) + " does not fit the model");
  };
  const auto blocks = static_cast<BlockId>(table.blocks().size());
  for (BlockId id = 0; id < blocks; ++id) {
    bool added = false;
    const Block block = table.block(id);
    for (TensorId t = block.begin; t < block.end; ++t) {
      const Tensor matrix = table.tensor(t);
      if (matrix.vector) continue;  // a bias has the module of its matrix
      const std::string a = module_of(matrix.name) + std::string(kLoraA);
      const auto found = entries.find(a);
      if (found == entries.end()) continue;
      const std::vector<int64_t>& shape = found->second.entry.shape;
      if (shape.size() != 2 || shape[0] < 1 || shape[1] != matrix.cols) {
        refuse_unfit(found->second);
      }
      if (!added) table.add_adapter(id, scale_of(scales, a, found->second.path));
      added = true;
      table.add_low_rank(t, shape[0]);
    }
  }
  for (const Tensor& t : table.tensors()) {
    if (!t.trainable || entries.contains(t.name)) continue;
    throw input_error(weights.front().path() + ": tensor " + quoted(t.name) + " is missing");
  }
  for (const SafetensorsFile& file : weights) {  // an adapter of nothing that takes one
    for (const SafetensorsEntry& entry : file.header().entries) {
      if (!table.find(entry.name)) refuse_unfit({entry, file.path()});
    }
  }
  return table;
}

}  // namespace hearth
