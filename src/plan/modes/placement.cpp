#include "modes/placement.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

Place Placement::dense(int32_t layer) const {
  for (const Stage& stage : stages) {
    if (stage.first <= layer && layer <= stage.last) return stage.place;
  }
  HEARTH_CHECK(false, "placement: a layer of no stage");
  return kHostPlace;
}

Place Placement::expert(int32_t layer, int32_t number, int64_t count) const {
  if (!homes.empty() && !homes[static_cast<size_t>(layer)].empty()) {
    return homes[static_cast<size_t>(layer)][static_cast<size_t>(number)];
  }
  if (experts.empty()) return dense(layer);
  const auto parts = static_cast<int64_t>(experts.size());
  return experts[static_cast<size_t>(number * parts / count)];
}

std::vector<Place> Placement::places() const {
  std::vector<Place> all;
  const auto add = [&](Place place) {
    if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
  };
  for (const Stage& stage : stages) add(stage.place);
  for (const Place place : experts) add(place);
  return all;
}

}  // namespace hearth
