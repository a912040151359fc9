// Digests of a state's content (docs/checkpoint-format.md, "Digests").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/pool.h"
#include "base/state_registry.h"

namespace hearth {

/// Digests of a state's content: of each tensor ("component/view"), of each component, and of all
/// (root). They depend only on names, types, shapes and bytes, so live memory and its saved state
/// have equal digests.
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

/// Whether a component is the runtime's own: it is saved, but no part of the root, and a state may lack
/// it. So a run may go on with another predictor, from a state of equal root.
bool is_of_runtime(const std::string& component);

/// Digests of the live memory, on the workers of `pool` if given.
StateDigest state_digest(const StateRegistry& registry, const Pool* pool = nullptr);

/// A tensor's contribution to a component's digest.
struct StateTensor {
  std::string name;
  std::string dtype;  // the safetensors name
  std::vector<int64_t> shape;
  Digest digest;  // of its bytes
};

/// The digest of a component, or of the part of it that a file has. The order of tensors does not
/// matter.
Digest component_digest(const std::string& component, std::vector<StateTensor> tensors);

/// Builds the digests of a state component by component.
class DigestBuilder {
 public:
  /// Returns the component's digest. The order of tensors and of calls does not matter.
  Digest add(const std::string& component, std::vector<StateTensor> tensors);
  StateDigest take();

 private:
  StateDigest result_;
};

inline constexpr size_t kStatePiece = size_t{4} << 20;  // bytes hashed and moved at a time

/// A component's views. Checks that they are whole tensors with unique names and correct sizes.
std::vector<StateView> checked_views(const StateComponent& component);
/// Calls f(index) for each view, on the workers of `pool` if given.
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
/// Calls f(piece, offset) for the bytes of a view in order: all at once if the host can access
/// them, else in pieces of kStatePiece.
template <class F>
void for_pieces(const StateView& view, const F& f) {
  if (view.direct()) return f(std::span<const std::byte>(view.bytes), size_t{0});
  std::vector<std::byte> staging;
  for (size_t at = 0; at < view.bytes.size(); at += kStatePiece) {
    f(view.read(at, std::min(kStatePiece, view.bytes.size() - at), staging), at);
  }
}
/// Digests of views in memory, on the workers of `pool` if given; StateView::digest where it is set.
std::vector<StateTensor> digest_views(const std::vector<StateView>& views,
                                      const Pool* pool = nullptr);
/// The same. In the same pass, finds the index of each view's first element that is not finite (the
/// number of elements if all are finite).
std::vector<StateTensor> digest_views(const std::vector<StateView>& views, const Pool* pool,
                                      std::vector<int64_t>& not_finite);

}  // namespace hearth
