// Where a block, a buffer or a task lives: the host, or a device of the run.
#pragma once

#include <cstdint>

namespace hearth {

/// 0 is the host; 1 and up are the devices of `--devices`, in order.
using Place = int32_t;
inline constexpr Place kHostPlace = 0;

}  // namespace hearth
