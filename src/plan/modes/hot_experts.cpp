#include "modes/hot_experts.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace hearth {

std::vector<LayerExpert> hottest_first(const ModelSpec& spec, const Stage& stage,
                                       const ExpertCounts& counts) {
  const auto tokens = [&](const LayerExpert& of) {
    return counts.empty() ? 0
                          : counts[static_cast<size_t>(of.layer)][static_cast<size_t>(of.expert)];
  };
  std::vector<LayerExpert> experts;
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (layer < stage.first || layer > stage.last || !spec.has_experts(layer)) continue;
    for (int32_t e = 0; e < spec.experts; ++e) experts.push_back({layer, e});
  }
  std::sort(experts.begin(), experts.end(), [&](const LayerExpert& a, const LayerExpert& b) {
    return std::tuple(-tokens(a), a.expert, a.layer) < std::tuple(-tokens(b), b.expert, b.layer);
  });
  return experts;
}

std::vector<ExpertSwap> swaps_to_hotter(const std::vector<std::vector<Place>>& homes,
                                        const ExpertCounts& counts, Place first_device) {
  std::vector<ExpertSwap> swaps;
  for (size_t layer = 0; layer < homes.size(); ++layer) {
    const std::vector<double>& tokens = counts[layer];
    std::vector<int32_t> elsewhere, at_device;
    for (size_t e = 0; e < homes[layer].size(); ++e) {
      (homes[layer][e] < first_device ? elsewhere : at_device).push_back(static_cast<int32_t>(e));
    }
    const auto of = [&](int32_t e) { return tokens[static_cast<size_t>(e)]; };
    std::ranges::stable_sort(elsewhere, std::ranges::greater{}, of);
    std::ranges::stable_sort(at_device, std::ranges::less{}, of);
    for (size_t i = 0; i < std::min(elsewhere.size(), at_device.size()); ++i) {
      const double hot = of(elsewhere[i]), cold = of(at_device[i]);
      if (hot <= cold || hot < kMuchHotter * cold) break;
      swaps.push_back({static_cast<int32_t>(layer), elsewhere[i], at_device[i]});
    }
  }
  return swaps;
}

double share_at_devices(const std::vector<std::vector<Place>>& homes, const ExpertCounts& counts,
                        Place first_device) {
  double there = 0, all = 0;
  for (size_t layer = 0; layer < homes.size(); ++layer) {
    for (size_t e = 0; e < homes[layer].size(); ++e) {
      all += counts[layer][e];
      if (homes[layer][e] >= first_device) there += counts[layer][e];
    }
  }
  return all > 0 ? there / all : 0;
}

std::vector<std::vector<Place>> homes_of(const ModelSpec& spec, const Placement& placement) {
  std::vector<std::vector<Place>> homes(static_cast<size_t>(spec.layers));
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (!spec.has_experts(layer)) continue;
    for (int32_t e = 0; e < spec.experts; ++e) {
      homes[static_cast<size_t>(layer)].push_back(placement.expert(layer, e, spec.experts));
    }
  }
  return homes;
}

}  // namespace hearth
