// Scratch for libraries, aligned like cudaMalloc's memory. Some libraries keep tensor maps in it,
// which the driver requires at multiples of 128 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"

namespace hearth::HEARTH_GPU {

constexpr size_t kLibraryAlignment = 256;  // cudaMalloc's

/// The scratch that `take_library_workspace` takes for n bytes.
constexpr size_t library_workspace_bytes(size_t n) { return n + kLibraryAlignment; }

/// n bytes, uninitialised, aligned to kLibraryAlignment.
inline void* take_library_workspace(Scratch& scratch, size_t n) {
  auto* const taken = scratch.take<std::byte>(static_cast<int64_t>(library_workspace_bytes(n)));
  const auto past = reinterpret_cast<uintptr_t>(taken) % kLibraryAlignment;
  return past == 0 ? taken : taken + (kLibraryAlignment - past);
}

}  // namespace hearth::HEARTH_GPU
