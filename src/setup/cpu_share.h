// Which ranks of a run use the same CPUs.
#pragma once

#include <cstdint>

namespace hearth {

/// Ranks of a run that may use the same CPUs as one of them.
struct CpuShare {
  int64_t ranks = 1, number = 0;  // of this one among them
  bool threads = false;           // of one process
};

}  // namespace hearth
