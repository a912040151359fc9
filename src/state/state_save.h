// Saving a state (docs/checkpoint-format.md, "Saving").
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

/// What is saved, and where: step `step` below run_dir/state. Afterwards all but the `keep` newest
/// states are removed.
struct SaveRequest {
  std::string run_dir;
  int64_t step = 0;
  int keep = 1;
  Json extra;  // an object for the manifest, not part of any digest
  /// Called when everything is written, before the state is published. If it raises an Error, the
  /// save fails.
  std::function<void()> before_publish = {};
};

/// One save in two halves, so that the second can run on another thread during the next steps.
///
/// It writes the views side by side in the order of the registry: the first view of every component,
/// then the second, and so on. The updates of the next step change them in the same order, and an
/// update waits until what it changes is written (`wait_until_safe`). Only components that ask for it
/// are copied.
class StateSave {
 public:
  /// Takes the digests of the live memory, on the workers of `pool` if given. What is written later
  /// must match them. Writes nothing to the disk. The registry must outlive the save. Numeric error
  /// for weights that are not finite, because such a state could not be loaded.
  StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool = nullptr);
  ~StateSave();
  StateSave(const StateSave&) = delete;
  StateSave& operator=(const StateSave&) = delete;

  const StateDigest& digest() const { return digest_; }
  int64_t step() const { return request_.step; }

  /// Writes and publishes the state, which is durable when this returns. Storage error if it cannot
  /// be saved: then nothing of it stays and older states are whole. Old states that cannot be removed
  /// are a warning. Call once, on any thread.
  SavedState write();

  /// Returns when the first `views` views of every component may change: they are written, or the
  /// save has failed. Any thread.
  void wait_until_safe(size_t views);
  /// Seconds that all calls of `wait_until_safe` waited together.
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

/// The memory that a save takes, by what it saves.
uint64_t save_memory_bytes(size_t views, size_t name_bytes);

}  // namespace hearth
