#include "modes/hot_experts.h"

#include <algorithm>
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
