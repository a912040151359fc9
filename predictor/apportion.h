// Divides whole numbers in proportion to weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// `total` divided in proportion to `weights` by the method of the largest remainder: each part is
/// its quota rounded down, or up for the parts with the largest remainders. Of equal remainders the
/// earlier part is rounded up. No part exceeds its cap: what a capped part cannot take goes to the
/// others in proportion. Weights are finite and at least 0; if all that are left are 0, the rest is
/// divided equally. The caps (empty: none) add up to at least `total`.
std::vector<int64_t> apportion(std::span<const double> weights, int64_t total,
                               std::span<const int64_t> caps = {});

}  // namespace hearth
