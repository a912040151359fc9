// How fast another rank computes than rank 0, by the cost table of the place that it computes at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "device/link_rate.h"
#include "plan/cost_model.h"

namespace hearth {

struct PlacedModel;

struct RankSpeed {
  int32_t rank = 0;
  std::string place = {};  // the place where it computes, by its name there: "virtual:0"
  /// Without a table, the rank is as fast as rank 0, as far as is known.
  PlaceCosts costs = {};
  bool paced = false;    // by costs=: ranks on the same cores do not slow it down
  LinkRates links = {};  // between its host and the place; of the host itself without limits
};

/// The speed of a rank that computes all at one place. None if that place has no table. `model`: on the
/// devices of the rank.
std::optional<RankSpeed> speed_of(const PlacedModel& model, int32_t rank);

/// What tasks take at such a rank, in schedules that have the places of `leader`, rank 0.
CostRates costs_at(const PlacedModel& leader, const RankSpeed& speed);

/// For other processes, which have the same program.
std::string speed_text(const RankSpeed& speed);
RankSpeed speed_in(const std::string& text);

}  // namespace hearth
