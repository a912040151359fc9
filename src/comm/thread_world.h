// Ranks as threads of this process: any number of them, for `--thread-ranks` and for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/world.h"
#include "device/link.h"
#include "device/link_rate.h"

namespace hearth {

struct ThreadWorldOptions {
  int32_t ranks = 1;
  /// Of each rank's link to all others, the same in both directions, which do not share it. A message
  /// occupies the link out of its sender and the link into its receiver at the same time, from when
  /// both sides have issued it. Messages pass a link one after the other, in this order.
  LinkRate links;
  /// A rank fails if others wait for it and it has for so long neither issued or waited for an
  /// operation nor called `beat`, unless it is away. So do ranks that for so long all wait for one
  /// another. 0: no limit. World::watch changes it, for all ranks.
  double silence_s = 20;
  /// What throttled messages wait by; must outlive the worlds. Silence is real time.
  LinkClock* clock = nullptr;  // null: the steady clock
};

/// The worlds of all ranks, by rank. Each is for the threads of its rank and may be destroyed
/// on its own. The copies of messages run on the thread that issues the later side.
std::vector<std::unique_ptr<World>> make_thread_worlds(const ThreadWorldOptions& options);

}  // namespace hearth
