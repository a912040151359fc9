// A saved state on disk: opening and checking it (docs/checkpoint-format.md).
//
//   RUN_DIR/state/step-00000100/   safetensors files of components, manifest.json
//
// One rename publishes a complete, durable state, which never changes afterwards. Readers check
// every hash before they trust it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "state/state_digest.h"
#include "state/state_directory.h"

namespace hearth {

struct SavedState {
  std::string directory;
  int64_t step = 0;
  StateDigest digest;
  Json extra;                             // the run's own record; not part of the digest
  std::vector<std::string> weights = {};  // names of the files of its weights
};

/// A storage error that says what is wrong with a state and names the bad file.
class DamagedState : public Error {
 public:
  DamagedState(const std::string& directory, std::string bad_file, std::string why);
  std::string file;
  std::string reason;
};

/// Reads only the manifest, and fills in only the root digest. For readers that check the content
/// while loading. DamagedState if the manifest cannot be read, NewerState for a newer format
/// version.
SavedState open_state(const std::string& directory);

/// The files of a state's weights, opened. The tensors of one follow those of the other. DamagedState
/// if one cannot be read.
std::vector<SafetensorsFile> open_weights(const SavedState& state);

/// Checks one state directory: the manifest, file sizes, the hash of every byte, and the content
/// digests. DamagedState or NewerState.
SavedState verify_state(const std::string& directory);

}  // namespace hearth
