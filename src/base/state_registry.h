// What is not registered here does not exist after a resume. Saving, hashing and loading are the
// registry's own (state/saved_state.h); components only show their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/place_memory.h"

namespace hearth {

/// A piece of state in the memory of a place: the slice [begin, end) of dimension 0 of a global tensor. One
/// rank shows whole tensors; several show slices, and a load is byte-range arithmetic.
struct StateView {
  std::string name;  // global, unique within the component
  DType dtype = DType::u8;
  std::vector<int64_t> shape;  // global
  int64_t begin = 0;
  int64_t end = 0;  // rows of dimension 0 held here
  std::span<std::byte> bytes;
  Place place = kHostPlace;
  PlaceMemory* memory = &host_memory();

  /// Whether the host uses the bytes where they lie.
  bool direct() const { return memory->host_reaches(place); }
  /// Bytes [at, at + n) for the host: where they lie, else in `staging`, whose content they replace.
  std::span<const std::byte> read(size_t at, size_t n, std::vector<std::byte>& staging) const {
    return host_bytes(*memory, place, bytes.subspan(at, n), staging);
  }
  /// Replaces the bytes from `at` on.
  void write(size_t at, std::span<const std::byte> from) const {
    memory->write(place, bytes.subspan(at, from.size()).data(), from);
  }
};

/// One component of the run's state. `views` shows the live memory (called again at every save and
/// load; shapes of a load are those of the file, so components of varying size resize in
/// `prepare`). `restored` is called once after a load has filled the views.
struct StateComponent {
  std::string name;
  std::function<std::vector<StateView>()> views;
  std::function<void(std::string_view view, uint64_t bytes)> prepare;  // optional, before a load
  std::function<void()> restored;                                      // optional, after a load
  /// A save reads live memory while the run goes on (StateSave); this one is copied when it begins.
  bool copied = false;
  /// The format version of saved state that added the component. A state of an older version does
  /// not hold it: a load then leaves it as the run begins it.
  int64_t since = 1;
};

/// Called with every component that a registry gets from now on, before it is added; may wrap its
/// functions. For tests, which see what a run is without a part of its state. An empty function
/// ends it. Not while registries are filled.
void decorate_components(std::function<void(StateComponent&)> decorate);

/// The list of components, in the order of registration. Owns none of the memory.
class StateRegistry {
 public:
  /// Names are unique: they name the component's file in the saved state.
  void add(StateComponent component);
  /// A component that is one JSON or text blob: written by `save`, given back to `load`.
  void add_text(std::string name, std::function<std::string()> save,
                std::function<void(const std::string&)> load);
  const std::vector<StateComponent>& components() const { return components_; }

 private:
  std::vector<StateComponent> components_;
};

}  // namespace hearth
