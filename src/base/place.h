// Where a block, a buffer or a task lives: the host, or one of the devices of the run.
#pragma once

#include <cstdint>

namespace hearth {

/// 0 is the host; 1 and up are the devices of `--devices`, in their order.
using Place = int32_t;
inline constexpr Place kHostPlace = 0;

}  // namespace hearth
