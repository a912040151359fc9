// Saves a state (docs/checkpoint-format.md, "Saving").
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "base/pool.h"
#include "base/state_registry.h"
#include "state/saved_state.h"
#include "state/state_parts.h"

namespace hearth {

/// The other processes that write files of a state. Calls come from the thread that writes.
class OtherWriters {
 public:
  virtual ~OtherWriters() = default;
  /// The directory is there: they begin to write what StateView::writer says.
  virtual void begin(const std::string& directory) = 0;
  /// Returns when none of them writes any more, and says what they wrote (StateParts::set_written).
  /// Storage error if one of them could not.
  virtual void wait(StateParts& parts) = 0;
  /// Whether none of them writes: before `begin`, and after `wait` unless they cannot be reached.
  virtual bool is_quiet() const = 0;
  /// Called now and then; raises if they cannot be reached.
  virtual void beat() = 0;
  /// The save is over, whatever became of it. Raises nothing.
  virtual void end() noexcept = 0;
};

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
  OtherWriters* others = nullptr;  // null: there are none
};

/// One save in two halves, so that the second half can run on another thread during the next steps
/// (StateParts).
class StateSave {
 public:
  /// Computes the digests of the live memory (StateParts), without writing to disk. The registry and
  /// the other writers must outlive the save. Numeric error if a weight is not finite.
  StateSave(const StateRegistry& registry, SaveRequest request, const Pool* pool = nullptr);
  StateSave(const StateSave&) = delete;
  StateSave& operator=(const StateSave&) = delete;

  const StateDigest& digest() const { return parts_.digest(); }
  int64_t step() const { return request_.step; }

  /// Writes and publishes the state, which is durable when this returns. On a storage error nothing
  /// of it remains, and older states are intact. Failing to remove old states is a warning. Call
  /// once, on any thread.
  SavedState write();

  /// StateParts::wait_until_safe; returns, too, if the save has failed.
  void wait_until_safe(size_t views) { parts_.wait_until_safe(views); }
  double waited_s() const { return parts_.waited_s(); }

 private:
  void write_files(const std::string& directory);

  SaveRequest request_;
  StateParts parts_;
};

/// A whole save on the calling thread.
SavedState save_state(const StateRegistry& registry, const std::string& run_dir, int64_t step,
                      int newest, const Json& extra);

/// The memory that a save takes for a tensor that is in so many components. `elsewhere`: another rank
/// owns it.
uint64_t save_memory_bytes(size_t name_length, size_t components, bool elsewhere = false);

}  // namespace hearth
