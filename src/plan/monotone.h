// Curves of measured times that never fall.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// The never-falling values that are nearest to `values`, by the sum of squared differences of their
/// logarithms (pool adjacent violators). Values are above 0.
std::vector<double> never_falling(std::span<const double> values);

/// Whole numbers from 1 to `most`, about equally far apart by their logarithms, each once; at most
/// `count` of them, which is at least 2.
std::vector<int64_t> log_spaced(int64_t most, int64_t count);

}  // namespace hearth
