// The state that a resume restores. State that is not registered here is lost. Components only show
// their memory; src/state saves, hashes and loads it (state/saved_state.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/place_memory.h"

namespace hearth {

/// A piece of state in the memory of a place: rows [begin, end) of dimension 0 of a global tensor.
/// Every rank shows whole tensors.
struct StateView {
  std::string name;  // global, unique within the component
  DType dtype = DType::u8;
  std::vector<int64_t> shape;  // global
  int64_t begin = 0;
  int64_t end = 0;  // rows of dimension 0 held here
  std::span<std::byte> bytes;
  Place place = kHostPlace;
  PlaceMemory* memory = &host_memory();
  /// The rank that writes the tensor into a saved state, or reads it; kThisRank: this process.
  int32_t writer = kThisRank;
  /// Of a tensor that another rank owns: the digest of its bytes, as that rank took it. Null: the
  /// bytes of `memory` have it.
  const Digest* digest = nullptr;

  static constexpr int32_t kThisRank = -1;

  /// Whether the host can access the bytes directly.
  bool direct() const { return memory->host_reaches(place); }
  /// Bytes [at, at + n): in place if direct, else a copy in `staging`, which is overwritten.
  std::span<const std::byte> read(size_t at, size_t n, std::vector<std::byte>& staging) const {
    return host_bytes(*memory, place, bytes.subspan(at, n), staging);
  }
  /// Replaces the bytes from `at` on.
  void write(size_t at, std::span<const std::byte> from) const {
    memory->write(place, bytes.subspan(at, from.size()).data(), from);
  }
};

/// One component of the run's state. `views` shows the live memory; every save and load calls it
/// again. A load uses the shapes in the file, so a component of varying size resizes in `prepare`.
/// `restored` is called once after a load has filled the views.
struct StateComponent {
  std::string name;
  std::function<std::vector<StateView>()> views;
  std::function<void(std::string_view view, uint64_t bytes)> prepare;  // optional, before a load
  std::function<void()> restored;                                      // optional, after a load
  /// A save reads live memory while the run goes on (StateSave). If set, the save copies this
  /// component when it begins.
  bool copied = false;
  /// The format version of saved state that added the component. A load of an older state leaves
  /// the component as the run initialised it.
  int64_t since = 1;
};

/// For tests that remove parts of the state: `decorate` is called with each new component before it
/// is added, and may wrap its functions. An empty function ends this. Do not call while registries
/// are being filled.
void decorate_components(std::function<void(StateComponent&)> decorate);

/// The components in the order of registration. Does not own their memory.
class StateRegistry {
 public:
  /// Names are unique; each names a file in the saved state.
  void add(StateComponent component);
  /// A component that is one text, such as JSON: `save` returns it, `load` receives it.
  void add_text(std::string name, std::function<std::string()> save,
                std::function<void(const std::string&)> load);
  const std::vector<StateComponent>& components() const { return components_; }

 private:
  std::vector<StateComponent> components_;
};

}  // namespace hearth
