// What small objects take of the heap.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hearth {

/// Of a piece of so many bytes: with the allocator's header, in units of 16, at least 32. 0: none.
constexpr size_t heap_bytes(size_t bytes) {
  return bytes == 0 ? 0 : std::max<size_t>(32, (bytes + 8 + 15) / 16 * 16);
}

/// Of a text beside its std::string, which holds up to 15 characters itself.
constexpr size_t text_heap_bytes(size_t length) { return length < 16 ? 0 : heap_bytes(length + 1); }

/// Of an entry of a std::unordered_map: with the link to the next one, and its share of the buckets.
/// `hash_is_kept`: the entry has its hash, as that of a text has.
constexpr size_t map_entry_bytes(size_t entry, bool hash_is_kept) {
  return heap_bytes(sizeof(void*) + entry + (hash_is_kept ? sizeof(size_t) : 0)) + sizeof(void*);
}

}  // namespace hearth
