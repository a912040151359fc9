#include "budget/shortage.h"

#include <algorithm>

namespace hearth {

uint64_t shortage(const Plan& plan) {
  uint64_t bytes = 0;
  for (const PlaceLines& place : plan.places) {
    bytes += place.peak - std::min(place.peak, place.budget.bytes);
  }
  return bytes;
}

}  // namespace hearth
