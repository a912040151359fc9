// Which experts a device takes besides its dense parts: the hottest first.
#pragma once

#include <cstdint>
#include <vector>

#include "model/spec.h"
#include "modes/placement.h"

namespace hearth {

/// Tokens of a sample, by layer and expert. Empty for layers without experts.
using ExpertCounts = std::vector<std::vector<double>>;

struct LayerExpert {
  int32_t layer = 0;
  int32_t expert = 0;
  friend bool operator==(const LayerExpert&, const LayerExpert&) = default;
};

/// The experts of a stage, the one with the most tokens first; of equals the lower number, then the
/// earlier layer. Without counts that is the order of all, so that every layer gets equally many.
std::vector<LayerExpert> hottest_first(const ModelSpec& spec, const Stage& stage,
                                       const ExpertCounts& counts);

/// The places of all experts of a model, by layer and number, as a placement has them.
std::vector<std::vector<Place>> homes_of(const ModelSpec& spec, const Placement& placement);

}  // namespace hearth
