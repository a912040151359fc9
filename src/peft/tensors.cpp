#include "peft/tensors.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error_format.h"
#include "checkpoint/model_files.h"
#include "model/weight_copy.h"
#include "peft/names.h"

namespace hearth {
namespace {

std::string where(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return file.path() + ": tensor " + quoted(entry.name);
}

void require_both(const SafetensorsFile& file, const AdapterTensors::Halves& halves) {
  if (halves.a >= 0 && halves.b >= 0) return;
  const auto& entries = file.header().entries;
  std::string name = entries[static_cast<size_t>(std::max(halves.a, halves.b))].name;
  name.replace(name.size() - kLoraA.size(), kLoraA.size(), halves.a < 0 ? kLoraA : kLoraB);
  throw input_error(file.path() + ": tensor " + quoted(name) + " is missing");
}

/// The name of the tensor that is stored whole; that beside a pair is called base_layer.
std::string whole_name(std::string name) {
  constexpr std::string_view kSuffix = ".weight";
  const std::string wrapped = std::string(kInnerPair) + std::string(kSuffix);
  if (name.ends_with(wrapped)) name.replace(name.size() - wrapped.size(), wrapped.size(), kSuffix);
  return name;
}

}  // namespace

void require_adapter_type(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (entry.dtype == "F32" || entry.dtype == "BF16" || entry.dtype == "F16") return;
  throw input_error(where(file, entry) + " is stored as " + entry.dtype +
                    "; expected F32, BF16 or F16");
}

AdapterConfig open_adapter_config(const std::string& directory, bool follow_links) {
  if (!has_model_file(directory, kAdapterConfig)) {
    throw input_error("{}: not an adapter directory; it has no {}", directory, kAdapterConfig);
  }
  const std::string path = model_file(directory, kAdapterConfig, follow_links);
  return AdapterConfig(read_json_file(path, kMaxConfigBytes), path);
}

SafetensorsFile open_adapter_weights(const std::string& directory, bool follow_links) {
  if (!has_model_file(directory, kAdapterWeights)) {
    if (has_model_file(directory, "adapter_model.bin")) {
      throw input_error(directory + "/adapter_model.bin: a pickle (torch.save), which can run " +
                        "code when it is read; save the adapter again with PEFT, which writes " +
                        "safetensors");
    }
    throw input_error(directory + ": no " + kAdapterWeights);
  }
  return SafetensorsFile(model_file(directory, kAdapterWeights, follow_links));
}

AdapterTensors::AdapterTensors(const SafetensorsFile& file, const ParameterTable& table,
                               const std::vector<AdapterModule>& modules, const Checkpoint& base) {
  std::unordered_map<std::string, TensorId> whole_names;
  for (TensorId id = 0; id < static_cast<TensorId>(table.tensors().size()); ++id) {
    const Tensor& t = table.tensor(id);
    if (table.block(t.block).kind == BlockKind::expert) continue;
    whole_names.emplace(t.name, id);
    whole_names.emplace(name_in_transformers_5(t.name), id);
  }
  std::unordered_set<TensorId> seen;
  std::unordered_map<std::string, size_t> by_name;
  std::unordered_set<std::string> containers;  // of experts in transformers 5
  for (size_t i = 0; i < modules.size(); ++i) {
    by_name.emplace(modules[i].name, i);
    if (modules[i].kind == BlockKind::expert) {
      containers.insert(modules[i].now.substr(0, modules[i].now.rfind('.')));
    } else {
      by_name.emplace(modules[i].now, i);
    }
  }
  const auto& entries = file.header().entries;
  if (entries.empty()) throw input_error(file.path() + ": no tensors");
  for (size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& entry = entries[i];
    const bool is_a = entry.name.ends_with(kLoraA);
    const bool prefixed = entry.name.starts_with(kAdapterPrefix);
    std::string name = prefixed ? entry.name.substr(kAdapterPrefix.size()) : entry.name;
    const auto found_whole = whole_names.find(whole_name(name));
    if (prefixed && found_whole != whole_names.end()) {
      const Tensor& t = table.tensor(found_whole->second);
      const std::vector<int64_t> shape =
          t.vector ? std::vector<int64_t>{t.cols} : std::vector<int64_t>{t.rows, t.cols};
      require_adapter_type(file, entry);
      if (entry.shape != shape || !seen.insert(found_whole->second).second) {
        throw input_error(where(file, entry) + " has shape " + shape_text(entry.shape) +
                          ", or is there twice; expected " + shape_text(shape));
      }
      whole.emplace_back(i, found_whole->second);
      continue;
    }
    if (!prefixed || !(is_a || name.ends_with(kLoraB))) {
      throw input_error(file.path() + ": unknown tensor " + quoted(entry.name) +
                        "; expected base_model.model.*.lora_A.weight and lora_B.weight");
    }
    require_adapter_type(file, entry);
    if (entry.shape.size() != 2) {
      throw input_error(where(file, entry) + " has shape " + shape_text(entry.shape) +
                        ", expected two dimensions");
    }
    name.resize(name.size() - kLoraA.size());
    std::string outer = name;
    if (outer.ends_with(kInnerPair)) outer.resize(outer.size() - kInnerPair.size());
    Halves* halves = nullptr;
    if (const auto found = by_name.find(name); found != by_name.end()) {
      halves = &single[found->second];
    } else if (containers.contains(outer)) {
      halves = &fused[name];
    } else {
      throw input_error(file.path() + ": unknown tensor " + quoted(entry.name) + "; " +
                        base.directory() + " has no matrix " + quoted(name) +
                        " that could have an adapter");
    }
    int64_t& half = is_a ? halves->a : halves->b;
    if (half >= 0) {
      throw input_error(where(file, entry) + " is stored a second time as " +
                        quoted(entries[static_cast<size_t>(half)].name));
    }
    half = static_cast<int64_t>(i);
  }
  for (const auto& [module, halves] : single) require_both(file, halves);
  for (const auto& [name, halves] : fused) require_both(file, halves);
}

void AdapterTensors::check_copy(const SafetensorsFile& file, const SafetensorsEntry& entry,
                                const std::string& name, const Checkpoint& base) {
  std::vector<float> stored, ours, theirs;
  const auto read = [&](const SafetensorsFile& from, const SafetensorsEntry& of, int64_t begin,
                        int64_t n, std::vector<float>& to) {
    const DType type = *safetensors_dtype(of.dtype);
    stored.resize(static_cast<size_t>(n));
    to.resize(static_cast<size_t>(n));
    from.read(of, stored.data(), static_cast<size_t>(n) * size_of(type),
              static_cast<uint64_t>(begin) * size_of(type));
    convert(type, stored.data(), DType::f32, to.data(), n);
  };
  const TensorLocation& at = base.location(name);
  int64_t size = 1;
  for (const int64_t of : entry.shape) size *= of;
  for (int64_t begin = 0; begin < size; begin += kPieceElements) {
    const int64_t n = std::min(kPieceElements, size - begin);
    read(file, entry, begin, n, ours);
    read(*base.files()[static_cast<size_t>(at.file)], at.entry, begin, n, theirs);
    if (ours == theirs) continue;
    throw input_error(where(file, entry) + " is not the tensor of " + base.directory() +
                      ", and modules_to_save does not name it");
  }
}

}  // namespace hearth
