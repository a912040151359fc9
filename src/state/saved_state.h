// Saved state: what a state registry shows, on disk and back (docs/checkpoint-format.md).
//
//   RUN_DIR/state/step-00000100/   one safetensors file a component, manifest.json
//
// A state appears by one rename, whole and durable, and never changes. It is found by listing the
// directory, newest first, and trusted only after every hash was checked. All functions run on the
// calling thread; a StateSave may be written by another one while the run goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/pool.h"
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

/// Of the live memory, on the workers of `pool` if given.
StateDigest state_digest(const StateRegistry& registry, const Pool* pool = nullptr);

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

/// What is saved, and where: step `step` below run_dir/state; then all but the `keep` newest states
/// are removed.
struct SaveRequest {
  std::string run_dir;
  int64_t step = 0;
  int keep = 1;
  Json extra;  // an object kept in the manifest: configuration, build, machine
  /// Called when all is written, before the state is published; an Error of it fails the save.
  std::function<void()> before_publish = {};
};

/// One save in two halves, so that the second can run on another thread under the steps that follow.
///
/// Views are written side by side in the order of the registry: the first of every component, then
/// the second, and so on, which is the order in which the updates of the next step change them. An
/// update waits until what it changes was written (`wait_until_safe`); no copy is made but of
/// components that ask for one.
class StateSave {
 public:
  /// Takes the digests of the live memory, on the workers of `pool` if given: what is written later
  /// must have them. Nothing reaches the disk. The registry must outlive the save. Numeric error for
  /// weights that are not finite: such a state could not be loaded.
  StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool = nullptr);
  ~StateSave();
  StateSave(const StateSave&) = delete;
  StateSave& operator=(const StateSave&) = delete;

  const StateDigest& digest() const { return digest_; }
  int64_t step() const { return request_.step; }

  /// Writes and publishes; the state is durable when this returns. Raises a storage error when it
  /// cannot be saved: then nothing of it stays and the older states are whole. What cannot be
  /// removed afterwards is a warning. Called once, by any thread.
  SavedState write();

  /// Returns when the first `views` views of every component may change: they were written, or the
  /// save has failed. Any thread.
  void wait_until_safe(size_t views);
  /// Seconds that `wait_until_safe` has waited, all calls together.
  double waited_s() const;

 private:
  struct Part;  // a component: its views and their digests
  struct Gate;  // how far the views are written
  void write_components(const std::string& directory);

  SaveRequest request_;
  StateDigest digest_;
  std::vector<Part> parts_;
  std::unique_ptr<Gate> gate_;
};

/// A whole save on the calling thread.
SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int keep, const Json& extra);

/// Memory that a save takes while it is under way, by what it saves.
uint64_t save_memory_bytes(size_t views, size_t name_bytes);

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

/// Removes all but the `keep` newest states, of which the newest was checked: what a process left
/// that was killed between a save and its retention. What cannot be removed is a warning.
void keep_newest_states(const std::string& run_dir, int keep);

/// Removes the .tmp-* and .trash-* entries of a directory and of its state directory: what a killed
/// process left. The caller holds the run's lock.
void remove_leftovers(const std::string& run_dir);

/// "step-00000100".
std::string state_directory_name(int64_t step);
/// The step of a path whose last part is such a name, nullopt for any other.
std::optional<int64_t> step_of_state_directory(const std::string& path);

}  // namespace hearth
