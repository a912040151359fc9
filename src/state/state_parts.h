// What one process writes of a state, while steps go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pool.h"
#include "base/state_registry.h"
#include "state/state_digest.h"
#include "state/state_manifest.h"

namespace hearth {

/// The components of a registry with their digests, in files of which this process writes its part.
///
/// It writes the first view of every component, then the second view of every component, and so on.
/// Views in memory of this process come before those in memory of other ranks. The updates of the
/// next step change the views in the same order. Each update waits until the views that it changes
/// are written (`wait_until_safe`). Only components with StateComponent::copied are copied.
class StateParts {
 public:
  /// Computes the digests of the live memory, on the workers of `pool` if given. The bytes that are
  /// written must match them. The registry must outlive the parts. Numeric error if a weight is not
  /// finite after `step`, because such a state could not be loaded. `rank`: of this process, if
  /// several write; its part of a component then has a file of its own.
  StateParts(const StateRegistry& registry, int64_t step, const Pool* pool = nullptr,
             std::optional<int32_t> rank = {});
  ~StateParts();
  StateParts(const StateParts&) = delete;
  StateParts& operator=(const StateParts&) = delete;

  /// Of all views, those of other writers included.
  const StateDigest& digest() const { return digest_; }
  /// The views that this process writes, component by component, each with its digest.
  struct OwnView {
    const StateView& view;
    const Digest& digest;
    size_t index;  // in its component
  };
  std::vector<OwnView> own_views() const;
  /// All files, in the order of the manifest. What this process writes has bytes and chunks after
  /// `write`; `set_written` takes those of other writers.
  const std::vector<StateFile>& files() const { return files_; }
  void set_written(const std::string& component, int32_t rank, uint64_t bytes,
                   std::vector<Digest> chunks);

  /// Writes and syncs the files of this process in a directory. Storage errors, and what `alive`
  /// raises: it is called now and then, and ends the write if nobody needs it any more. Call once.
  void write(const std::string& directory, const std::function<void()>& alive = {});

  /// The first `views` views of every component may change.
  void open(size_t views);
  void open_all();
  /// Returns when the first `views` views of every component may change. Call on any thread.
  void wait_until_safe(size_t views);
  /// Total seconds that calls of `wait_until_safe` have waited.
  double waited_s() const;

 private:
  struct Part;  // of a component: the views of this process and their digests
  struct Gate;  // how far the views are written
  /// Returns the file of this process, if it writes any of the component.
  std::optional<size_t> add_files(const std::string& component, std::optional<int32_t> rank,
                                  const std::vector<StateView>& views,
                                  const std::vector<StateTensor>& tensors);

  StateDigest digest_;
  std::vector<Part> parts_;
  std::vector<StateFile> files_;
  std::unique_ptr<Gate> gate_;
};

}  // namespace hearth
