// The memory that the calling thread holds through operator new, to hold parsers to their bounds.
#pragma once

#include <cstdint>

namespace hearth::test {

void start_counting();   // peak := what is held now
int64_t counted_peak();  // most that was held since, above what was held at the start

}  // namespace hearth::test
