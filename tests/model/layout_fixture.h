// A checkpoint and its twin with fused experts.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model_fixtures.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

namespace hearth::test {

inline constexpr const char* kGateUp = "model.layers.0.mlp.experts.gate_up_proj";
inline constexpr const char* kDown = "model.layers.0.mlp.experts.down_proj";

using Change = std::function<void(std::vector<StoredTensor>&)>;

inline bool first_layer(const std::string& prefix) { return prefix == "model.layers.0."; }

/// A random checkpoint and, at `directory`-fused, its twin with fused experts.
inline std::string make_twins(const Json& config, const std::string& directory) {
  const std::string fused = directory + "-fused";
  make_checkpoint(config, directory);
  std::filesystem::copy(directory, fused);
  edit(fused, [](auto& tensors) { fuse(tensors); });
  return fused;
}

inline OwnedTable read(const Checkpoint& checkpoint, bool training = true) {
  OwnedTable owned(checkpoint, training);
  checkpoint.read_weights(owned.table, Pool(3));
  return owned;
}

/// The refusal of a changed copy of a checkpoint; empty if it opens and reads.
inline std::string error_after(const std::string& directory, const Change& change) {
  const std::string copy = directory + "-copy";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(directory, copy);
  edit(copy, change);
  return error_of([&] { read(Checkpoint(copy)); });
}

}  // namespace hearth::test
