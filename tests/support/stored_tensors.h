// Loads the tensors of a weight file, to edit them or to fuse experts.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace hearth::test {

struct StoredTensor {
  SafetensorsEntry entry;
  std::string data;
};

inline std::vector<StoredTensor> load(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<StoredTensor> out;
  for (const SafetensorsEntry& entry : file.header().entries) {
    out.push_back({entry, std::string(entry.end - entry.begin, '\0')});
    file.read(entry, out.back().data.data(), out.back().data.size(), 0);
  }
  return out;
}

inline void store(const std::string& path, const std::vector<StoredTensor>& tensors) {
  remove_file(path);
  std::vector<SafetensorsEntry> entries;
  for (const auto& tensor : tensors) entries.push_back(tensor.entry);
  SafetensorsWriter writer(path, entries, {});
  for (const auto& tensor : tensors) writer.write(tensor.data.data(), tensor.data.size());
  writer.close();
}

/// Rewrites model.safetensors of a checkpoint with the tensors that `change` edited.
inline void edit(const std::string& directory,
                 const std::function<void(std::vector<StoredTensor>&)>& change) {
  std::vector<StoredTensor> tensors = load(directory + "/model.safetensors");
  change(tensors);
  store(directory + "/model.safetensors", tensors);
}

/// Fuses the experts of a layer as transformers 5 stores them: [experts, 2 * width, hidden] with
/// the rows of gate before up, and [experts, hidden, width]. Only for layers whose prefix
/// ("model.layers.0.") passes `chosen`.
inline void fuse(
    std::vector<StoredTensor>& tensors,
    const std::function<bool(const std::string&)>& chosen = [](auto&) { return true; }) {
  std::vector<StoredTensor> kept;
  std::map<std::string, std::map<int, std::map<std::string, StoredTensor>>> layers;
  for (StoredTensor& tensor : tensors) {
    const std::string& name = tensor.entry.name;
    const size_t at = name.find(".experts.");
    const size_t expert = at + 9;
    if (at == std::string::npos || !chosen(name.substr(0, name.find('.', 13) + 1))) {
      kept.push_back(std::move(tensor));
      continue;
    }
    const size_t dot = name.find('.', expert);
    const int e = std::stoi(name.substr(expert, dot - expert));
    layers[name.substr(0, expert)][e][name.substr(dot + 1)] = tensor;
  }
  for (const auto& [prefix, experts] : layers) {
    const auto count = static_cast<int64_t>(experts.size());
    StoredTensor gate_up, down;
    for (const auto& [e, parts] : experts) {
      const bool numbered = parts.contains("w1.weight");
      const StoredTensor& gate = parts.at(numbered ? "w1.weight" : "gate_proj.weight");
      const StoredTensor& up = parts.at(numbered ? "w3.weight" : "up_proj.weight");
      const StoredTensor& out = parts.at(numbered ? "w2.weight" : "down_proj.weight");
      gate_up.data += gate.data + up.data;
      down.data += out.data;
      gate_up.entry = {prefix + "gate_up_proj",
                       gate.entry.dtype,
                       {count, 2 * gate.entry.shape[0], gate.entry.shape[1]},
                       0,
                       0};
      down.entry = {prefix + "down_proj",
                    out.entry.dtype,
                    {count, out.entry.shape[0], out.entry.shape[1]},
                    0,
                    0};
    }
    kept.push_back(std::move(gate_up));
    kept.push_back(std::move(down));
  }
  tensors = std::move(kept);
}

/// The tensor of this name; fails the test if there is none.
inline StoredTensor& named(std::vector<StoredTensor>& tensors, const std::string& name) {
  for (StoredTensor& tensor : tensors) {
    if (tensor.entry.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return tensors[0];
}

}  // namespace hearth::test
