// What the sources of saved_state.h share: the manifest and the digests (docs/checkpoint-format.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/state_registry.h"
#include "state/saved_state.h"

namespace hearth {

inline constexpr char kManifestName[] = "manifest.json";
/// The component of f32 masters: one that is not finite is none that a model may have.
inline constexpr std::string_view kWeights = "weights";
inline constexpr uint64_t kStateChunk = uint64_t{64} << 20;   // bytes of a file under one hash
inline constexpr uint64_t kMaxManifest = uint64_t{32} << 20;  // of states to 45 TB
inline constexpr size_t kStatePiece = size_t{4} << 20;        // bytes hashed and moved at a time

/// One component's file.
struct StateFile {
  std::string component;
  uint64_t bytes = 0;
  std::vector<Digest> chunks;  // of the file
  Digest digest;               // of the component's content
  std::string name() const { return component + ".safetensors"; }
};

struct StateManifest {
  int64_t step = 0;
  std::vector<StateFile> files;  // in the order of registration
  Digest root;
  Json extra;
};

std::string manifest_text(const StateManifest& manifest);
/// Raises an input error naming `source` for a text that `manifest_text` did not write.
StateManifest parse_manifest(std::string_view text, const std::string& source);

/// A tensor as it enters a component's digest.
struct StateTensor {
  std::string name;
  std::string dtype;  // the name in safetensors files
  std::vector<int64_t> shape;
  Digest digest;  // of its bytes
};

/// The digests of a state, put together component by component.
class DigestBuilder {
 public:
  /// Returns the component's digest. The order of tensors and of calls does not matter.
  Digest add(const std::string& component, std::vector<StateTensor> tensors);
  StateDigest take();

 private:
  StateDigest result_;
};

/// The folder of a run's states.
inline std::string state_folder(const std::string& run_dir) { return run_dir + "/state"; }

/// Gives a directory another name before removing it, so that a half removed one is never taken for
/// a state. Best effort: what stays is told as a warning and removed at the next start.
void discard_state(const std::string& directory, const std::string& hidden);
/// Removes all but the newest `keep` states of the folder, and rejected ones that two newer states
/// have replaced. What cannot be removed is a warning.
void remove_old_states(const std::string& folder, int keep);

/// A component's views, checked: whole tensors, unique names, sizes that fit.
std::vector<StateView> checked_views(const StateComponent& component);
/// f(index) for each view, on the workers of `pool` if given.
template <class F>
void for_views(const std::vector<StateView>& views, const Pool* pool, const F& f) {
  const auto count = static_cast<int64_t>(views.size());
  const auto run = [&](int64_t i, int /*worker*/) { f(static_cast<size_t>(i)); };
  if (pool != nullptr) {
    pool->run(count, run);
  } else {
    for (int64_t i = 0; i < count; ++i) run(i, 0);
  }
}
/// f(piece, offset) for the bytes of a view in their order: all at once where the host reaches them,
/// else in pieces of kStatePiece.
template <class F>
void for_pieces(const StateView& view, const F& f) {
  if (view.direct()) return f(std::span<const std::byte>(view.bytes), size_t{0});
  std::vector<std::byte> staging;
  for (size_t at = 0; at < view.bytes.size(); at += kStatePiece) {
    f(view.read(at, std::min(kStatePiece, view.bytes.size() - at), staging), at);
  }
}
/// Their digests, from memory, on the workers of `pool` if given.
std::vector<StateTensor> digest_views(const std::vector<StateView>& views,
                                      const Pool* pool = nullptr);
/// The same, and the first element of each that is not finite, its size where all are: one pass over
/// the memory serves both.
std::vector<StateTensor> digest_views(const std::vector<StateView>& views, const Pool* pool,
                                      std::vector<int64_t>& not_finite);

}  // namespace hearth
