// How long streams take at least that divide some of their work among themselves.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hearth {

/// Work of which each of some streams may do any part, as the rows of a layer's experts go wherever the
/// router sends them.
struct DividedWork {
  struct Share {
    size_t stream = 0;
    double seconds = 0;  // if the stream did all of it
  };
  std::vector<Share> shares;  // each stream once
};

/// A lower bound of the time of the stream that takes longest, for the best division of all work.
/// `fixed[s]`: seconds of what stream s does in any case.
///
/// By weak duality: for weights of the streams that add up to 1, the longest takes no less than the
/// weighted mean of all, in which each work counts at least as where it is cheapest. Weights are in
/// proportion to the speeds, over the streams with the least fixed work, for every number of them. If
/// the streams' speeds have the same ratio for all work, that is exact.
double least_time_of_longest(std::span<const double> fixed, std::span<const DividedWork> work);

}  // namespace hearth
