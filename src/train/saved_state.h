// Saved state: what a state registry shows, on disk and back (docs/checkpoint-format.md).
//
//   RUN_DIR/state/step-00000100/   one safetensors file a component, manifest.json
//
// A state appears by one rename, whole and durable, and never changes. It is found by listing the
// directory, newest first, and trusted only after every hash was checked. All functions run on the
// calling thread; the registry's memory must not change during a save.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/state_registry.h"

namespace hearth {

/// Digests of a state's content: of every tensor ("component/view") and component, by name, and of
/// all (root). Equal for the live registry and for what was saved of it; nothing but names, types,
/// shapes and bytes goes in.
struct StateDigest {
  struct Item {
    std::string name;
    Digest digest;
    friend bool operator==(const Item&, const Item&) = default;
  };
  std::vector<Item> tensors;
  std::vector<Item> components;
  Digest root;
  friend bool operator==(const StateDigest&, const StateDigest&) = default;
};

StateDigest state_digest(const StateRegistry& registry);

/// A state on disk.
struct SavedState {
  std::string directory;
  int64_t step = 0;
  StateDigest digest;
  Json extra;  // what the saver added: no part of the digest
};

/// A state that was passed over, and why. `file` is its bad file (a name in the directory; empty
/// where the directory itself is wrong).
struct RejectedState {
  std::string directory;
  std::string file;
  std::string reason;
  /// The warning about it.
  std::string message() const {
    return "saved state passed over: " + directory + (file.empty() ? "" : "/" + file) + ": " +
           reason;
  }
};

/// Saves step `step` below run_dir/state, then removes all but the `keep` newest states. The state is
/// durable when this returns. Raises a storage error when it cannot be saved: then nothing of it
/// stays and the older states are whole. What cannot be removed afterwards is a warning.
/// `extra` is an object kept in the manifest: configuration, build, machine.
SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int keep, const Json& extra);

/// The newest state of a run directory that passes every check; `rejected` is called for each newer
/// one that does not. nullopt when there was never one. A storage error when there are states but
/// none is whole. Changes nothing on disk.
std::optional<SavedState> find_newest_state(
    const std::string& run_dir, const std::function<void(const RejectedState&)>& rejected);

/// What is wrong with a state: a storage error that names its file.
class DamagedState : public Error {
 public:
  DamagedState(const std::string& directory, std::string bad_file, std::string why);
  std::string file;
  std::string reason;
};

/// The states of a run directory, newest first, for a reader that checks contents as it loads them:
/// a resume reads a state once.
class StateSearch {
 public:
  StateSearch(const std::string& run_dir, std::function<void(const RejectedState&)> rejected);

  /// The next older state, starting with the newest, whose manifest can be read; of its digest only
  /// the root is known. nullopt when there was never a state. A storage error when all there are
  /// were passed over.
  std::optional<SavedState> next();
  /// Tells that a state which `next` gave is damaged.
  void reject(const SavedState& state, const DamagedState& damage) const;

 private:
  std::string root_;
  std::function<void(const RejectedState&)> rejected_;
  std::vector<int64_t> steps_;  // still to be tried, ascending
  bool had_states_ = false;
};

/// One state as its manifest tells, of its digest only the root: for a reader that checks contents as
/// it loads them. A DamagedState when the manifest cannot be read.
SavedState open_state(const std::string& directory);

/// Checks one state directory: manifest, sizes, every byte's hash, and that contents give the
/// digests of the manifest. A storage error names directory, file and, where known, the bytes.
SavedState verify_state(const std::string& directory);

/// Fills the registry's memory from a state: first `prepare` of every component, then the views,
/// then, when all is there, every `restored`. A storage error when components, views, types or
/// shapes differ from what the registry shows, and a DamagedState when the bytes read have another
/// digest than the manifest says or a file cannot be read: memory then holds parts of the state.
void load_state(const StateRegistry& registry, const SavedState& state);

/// Renames rejected states to state/.bad-step-*, out of the way of a new save of that step. Called
/// once a run goes on from an older one; save_state removes them when two newer states exist.
void set_aside(const std::vector<RejectedState>& rejected);

/// Removes the .tmp-* and .trash-* entries of a directory and of its state directory: what a killed
/// process left. The caller holds the run's lock.
void remove_leftovers(const std::string& run_dir);

/// "step-00000100".
std::string state_directory_name(int64_t step);
/// The step of such a name, nullopt for any other.
std::optional<int64_t> step_of_state_directory(const std::string& name);

}  // namespace hearth
