// What the tests of opening and reading checkpoints share.
#pragma once

#include <string>

#include "model_fixtures.h"
#include "support/stored_tensors.h"
#include "support/temporary_directory.h"

namespace hearth::test {

inline constexpr const char* kQ = "model.layers.0.self_attn.q_proj.weight";
inline constexpr const char* kNorm = "model.norm.weight";

inline std::string open_error(const std::string& directory, bool follow_links = false) {
  return error_of([&] { Checkpoint checkpoint(directory, follow_links); });
}

inline std::string read_error(const std::string& directory) {
  return error_of([&] {
    const Checkpoint checkpoint(directory);
    OwnedTable owned(checkpoint, true);
    checkpoint.read_weights(owned.table, Pool(2));
  });
}

}  // namespace hearth::test
