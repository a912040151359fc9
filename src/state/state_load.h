// Loads a saved state into the memory of a run (docs/checkpoint-format.md, "Finding and loading").
#pragma once

#include <functional>
#include <vector>

#include "base/hash.h"
#include "base/state_registry.h"
#include "state/saved_state.h"

namespace hearth {

/// The other processes that read a state. Each fills its own memory. Calls come from the thread that
/// loads.
class OtherReaders {
 public:
  virtual ~OtherReaders() = default;
  /// They begin to read the state, if they find it. From here on StateView::writer of a view names the
  /// one that reads it; this process reads all others.
  virtual void begin_reading(const SavedState& state) = 0;
  /// Returns when all have read. Then StateView::digest is that of what they read. DamagedState if one
  /// of them could not.
  virtual void end_reading() = 0;
};

/// Fills the memory of the registry from a state: calls `prepare` of every component, fills all
/// views, then calls every `restored`. Storage error if components, views, types or shapes differ
/// from the registry's. DamagedState if a file cannot be read or a digest differs, whoever read it; the
/// memory is then partly overwritten and must not be used. `others`: null, this process reads all.
void load_state(const StateRegistry& registry, const SavedState& state,
                OtherReaders* others = nullptr);

/// Fills the memory of the registry's weights alone, and calls their `restored`. The state's other
/// files are not read. Errors as load_state.
void load_weights(const StateRegistry& registry, const SavedState& state);

/// What one of the other processes reads: the tensors of its registry's views, from the files that have
/// them. Returns the digests of the memory, component by component in the order of the views.
/// `restored` is not called. The process that answers for the state compares the digests; DamagedState
/// for what it could not see. `alive` is called before each tensor, and ends the load by raising.
std::vector<Digest> load_part(const StateRegistry& registry, const SavedState& state,
                              const std::function<void()>& alive);

}  // namespace hearth
