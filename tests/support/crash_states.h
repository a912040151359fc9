// Enumerates the disks that a power loss may leave. Take any prefix of the changes; each change
// that was not synced by then may or may not be on the disk. File data and directory entries
// persist independently, renames and removals in any order. A write persists whole, not at all,
// torn at a multiple of 512 bytes, or as zeros if the file grew without its data.
#pragma once

#include <functional>
#include <string>

#include "support/memory_disk.h"

namespace hearth::test {

struct CrashBounds {
  /// Limits the states after each change. Up to `exhaustive` combinations: tries all. Else: all
  /// pending changes, none, each one alone, each one missing, and `draws` random combinations.
  int64_t exhaustive = 300;
  int64_t draws = 40;
  uint64_t seed = 1;
  size_t first = 0;    // try crashes after this many changes and later,
  size_t stride = 1;   // after every stride-th change
  size_t alone = 100;  // tries "alone" and "missing" only for this many last changes
};

struct CrashReport {
  int64_t states = 0;    // tried
  int64_t distinct = 0;  // with different content or promise
  std::string fault;     // the first fault, with the way to reproduce it; empty: none
};

/// Passes each state to `judge` as a separate disk, with the promise made by then. `judge` returns
/// a fault, or an empty text. The first fault ends the search.
CrashReport crash_states(const MemoryDisk& disk, const CrashBounds& bounds,
                         const std::function<std::string(MemoryDisk&, int promised)>& judge);

}  // namespace hearth::test
