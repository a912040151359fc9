// A saved state on disk: opening, checking and loading it (docs/checkpoint-format.md).
//
//   RUN_DIR/state/step-00000100/   one safetensors file per component, manifest.json
//
// A state appears by one rename, whole and durable, and never changes. A reader trusts it only after
// it has checked every hash.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/state_registry.h"
#include "state/state_digest.h"
#include "state/state_directory.h"

namespace hearth {

struct SavedState {
  std::string directory;
  int64_t step = 0;
  StateDigest digest;
  Json extra;  // what the run recorded; not part of the digest
};

/// A storage error that says what is wrong with a state and names its file.
class DamagedState : public Error {
 public:
  DamagedState(const std::string& directory, std::string bad_file, std::string why);
  std::string file;
  std::string reason;
};

/// Reads the manifest alone; of the digests only the root is known. For readers that check the
/// contents as they load them. DamagedState if the manifest cannot be read, NewerState for a newer
/// format version.
SavedState open_state(const std::string& directory);

/// Checks one state directory: the manifest, sizes, the hash of every byte, and that the contents
/// give the digests of the manifest. DamagedState or NewerState.
SavedState verify_state(const std::string& directory);

/// Fills the memory of the registry from a state: first `prepare` of every component, then the views,
/// then, when everything is there, every `restored`. Storage error if components, views, types or
/// shapes differ from the registry's. DamagedState if a file cannot be read or a digest differs:
/// memory then holds parts of the state.
void load_state(const StateRegistry& registry, const SavedState& state);

}  // namespace hearth
