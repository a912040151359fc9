// Saves a state (docs/checkpoint-format.md, "Saving").
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/pool.h"
#include "base/state_registry.h"
#include "state/saved_state.h"
#include "state/state_digest.h"

namespace hearth {

/// What to save, and where: as step `step` below run_dir/state. Afterwards all states but the kept
/// ones are removed.
struct SaveRequest {
  std::string run_dir;
  int64_t step = 0;
  KeptStates keep = {};
  Json extra;  // an object for the manifest, not part of any digest
  /// Called when everything is written, before the state is published. If it raises an Error, the
  /// save fails.
  std::function<void()> before_publish = {};
};

/// One save in two halves, so that the second half can run on another thread during the next steps.
///
/// It writes the first view of every component, then the second view of every component, and so on.
/// The updates of the next step change the views in the same order. Each update waits until the
/// views that it changes are written (`wait_until_safe`). Only components with
/// StateComponent::copied are copied.
class StateSave {
 public:
  /// Computes the digests of the live memory, on the workers of `pool` if given. The bytes that
  /// `write` writes must match them. Does not write to disk. The registry must outlive the save.
  /// Numeric error if a weight is not finite, because such a state could not be loaded.
  StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool = nullptr);
  ~StateSave();
  StateSave(const StateSave&) = delete;
  StateSave& operator=(const StateSave&) = delete;

  const StateDigest& digest() const { return digest_; }
  int64_t step() const { return request_.step; }

  /// Writes and publishes the state, which is durable when this returns. On a storage error nothing
  /// of it remains, and older states are intact. Failing to remove old states is a warning. Call
  /// once, on any thread.
  SavedState write();

  /// Returns when the first `views` views of every component may change: they are written, or the
  /// save has failed. Call on any thread.
  void wait_until_safe(size_t views);
  /// Total seconds that calls of `wait_until_safe` have waited.
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
                      int newest, const Json& extra);

/// The memory that a save takes.
uint64_t save_memory_bytes(size_t views, size_t name_bytes);

}  // namespace hearth
