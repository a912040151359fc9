// What a quick measurement says of the sizes that it had no time for.
#pragma once

#include <vector>

#include "runtime/profile_curves.h"

namespace hearth {

/// Adds to each curve's times its largest size, if the time ended before that was measured. From the
/// last measured size on, the time grows as that of the other phase does, if that was measured at
/// both sizes, else as between the last two measured sizes, but never faster than in proportion. A
/// curve without any time gets twice the times of its forward, or half of those of its backward.
void add_unreached(const std::vector<ProfileCurve>& curves, std::vector<CurveTimes>& times);

}  // namespace hearth
