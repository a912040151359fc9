// What a disk may hold after the power was lost: any prefix of the changes, and of those that were
// not synced by then any part. Data and entries of directories persist independently; renames and
// removals in any order; a write whole, not at all, torn at a multiple of 512 bytes, or as zeros
// where the file grew without its data.
#pragma once

#include <functional>
#include <string>

#include "support/memory_disk.h"

namespace hearth::test {

struct CrashBounds {
  /// After each change: all combinations where there are at most so many; else all, nothing, each
  /// one alone, each one missing, and so many drawn ones.
  int64_t exhaustive = 300;
  int64_t draws = 40;
  uint64_t seed = 1;
  size_t first = 0;    // look at crashes after this many changes and later,
  size_t stride = 1;   // after each stride-th
  size_t alone = 100;  // each one alone or missing: of the last so many
};

struct CrashReport {
  int64_t states = 0;    // looked at
  int64_t distinct = 0;  // of other content, or with another promise
  std::string fault;     // the first one found, with how to get there; empty: none
};

/// Hands each state to `judge` as a disk of its own, with what had been promised by then. `judge`
/// returns what is wrong with it, or an empty text; the first fault ends the search.
CrashReport crash_states(const MemoryDisk& disk, const CrashBounds& bounds,
                         const std::function<std::string(MemoryDisk&, int promised)>& judge);

}  // namespace hearth::test
