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

/// Experts of a layer that exchange their places.
struct ExpertSwap {
  int32_t layer = 0;
  int32_t comes = 0;   // to a device
  int32_t leaves = 0;  // it
  friend bool operator==(const ExpertSwap&, const ExpertSwap&) = default;
};

/// An expert takes the place of one at a device if it had at least so many times its tokens, so that
/// experts of nearly equal use stay where they are.
inline constexpr double kMuchHotter = 1.25;

/// For experts whose use has changed: in each layer the hottest one that is at no device and the coldest
/// one that is at a device are exchanged, then the next two, as long as that is worth it. So each place
/// has as many experts of each layer as before. `homes`: their places by layer and number; devices
/// are those from `first_device` on.
std::vector<ExpertSwap> swaps_to_hotter(const std::vector<std::vector<Place>>& homes,
                                        const ExpertCounts& counts, Place first_device);

/// The share of the counted tokens whose experts are at devices; of none 0.
double share_at_devices(const std::vector<std::vector<Place>>& homes, const ExpertCounts& counts,
                        Place first_device);

}  // namespace hearth
