// Mutations of JSON that stay JSON, so that fuzzing gets past the grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::test {

/// Changes one or more fields of the text: a value, a key, a member taken out, doubled, moved or
/// named twice. A text that is no JSON comes back as it is. The same for the same seed.
std::string mutate_json(std::string_view text, uint32_t seed);

/// What LLVMFuzzerCustomMutator of a target is made of: half the time `change` of the whole input,
/// else (and where its result does not fit) the engine's own mutation. Returns the new size.
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
