// How much memory a measurement can prepare in a time.
#pragma once

#include <cstdint>

namespace hearth {

/// How many bytes of the host can be touched and filled in a time: fewer where others take the
/// cores.
uint64_t filled_in(double seconds);

}  // namespace hearth
