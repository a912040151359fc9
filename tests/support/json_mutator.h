// Mutates JSON into other valid JSON, so fuzzing gets past the grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::test {

/// Makes one or more changes: edits a value, adds a member under a changed key, removes, copies or
/// swaps members, or repeats a key. Returns invalid JSON unchanged. Deterministic by seed.
std::string mutate_json(std::string_view text, uint32_t seed);

/// The body of a target's LLVMFuzzerCustomMutator. Half the time it applies `change` to the whole
/// input. Else, or if the result does not fit or is unchanged, it uses the engine's own mutation.
/// Returns the new size.
template <class Change>
size_t mutate_input(uint8_t* data, size_t size, size_t most, uint32_t seed, const Change& change);

}  // namespace hearth::test

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

template <class Change>
size_t hearth::test::mutate_input(uint8_t* data, size_t size, size_t most, uint32_t seed,
                                  const Change& change) {
  if (seed % 2 == 0) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string changed = change(text, seed / 2);
    if (changed.size() <= most && changed != text) {
      changed.copy(reinterpret_cast<char*>(data), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}
