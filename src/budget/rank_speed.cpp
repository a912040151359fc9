#include "budget/rank_speed.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "budget/placed_model.h"
#include "budget/run_rates.h"
#include "setup/cost_table_file.h"

namespace hearth {

namespace {

Json link_json(const LinkRate& link) { return JsonArray{link.bytes_per_s, link.latency_s}; }

LinkRate link_in(const Json& json) {
  const JsonArray& numbers = json.as_array();
  return {numbers.at(0).as_double(), numbers.at(1).as_double()};
}

}  // namespace

std::optional<RankSpeed> speed_of(const PlacedModel& model, int32_t rank) {
  const std::vector<Place> places = model.placement.places();
  if (places.size() != 1) return std::nullopt;
  const Place at = places.front();
  const ComputePlace& place = model.opened->place(at);
  RankSpeed speed{rank, place.budget.name, cost_tables(model)[static_cast<size_t>(at)]};
  if (!speed.costs.table) return std::nullopt;
  speed.paced = place.costs != nullptr && place.paced;
  if (const auto stated = place.device->link_rates(); at != kHostPlace && stated) {
    speed.links = *stated;
  }
  return speed;
}

CostRates costs_at(const PlacedModel& leader, const RankSpeed& speed) {
  CostRates costs = leader.rates->costs;
  costs.ranks.shards.rank = speed.rank;
  if (!speed.costs.table) return costs;
  const Place place = leader.placement.stages.front().place;
  const auto at = static_cast<size_t>(place);
  costs.tables.resize(std::max(costs.tables.size(), at + 1));
  costs.tables[at] = speed.costs;
  costs.links.resize(std::max(costs.links.size(), at + 1));
  if (place != kHostPlace) costs.links[at] = speed.links;
  if (speed.paced) costs.ranks.products = costs.ranks.sweeps = 1;
  return costs;
}

std::string speed_text(const RankSpeed& speed) {
  return Json(JsonObject{{"rank", int64_t{speed.rank}},
                         {"place", speed.place},
                         {"cores", speed.costs.cores},
                         {"compute", static_cast<int64_t>(speed.costs.compute)},
                         {"paced", speed.paced},
                         {"in", link_json(speed.links.in)},
                         {"out", link_json(speed.links.out)},
                         {"table", cost_table_json(*speed.costs.table, {speed.place, "", ""})}})
      .dump();
}

RankSpeed speed_in(const std::string& text) {
  const std::string source = "the cost table of a rank";
  const Json json = parse_json(text, source);
  RankSpeed speed;
  speed.rank = static_cast<int32_t>(json.find("rank")->as_int());
  speed.place = json.find("place")->as_string();
  speed.costs.cores = json.find("cores")->as_int();
  speed.costs.compute = static_cast<Compute>(json.find("compute")->as_int());
  speed.paced = json.find("paced")->as_bool();
  speed.links.in = link_in(*json.find("in"));
  speed.links.out = link_in(*json.find("out"));
  speed.costs.table =
      std::make_shared<const CostTable>(cost_table_of(*json.find("table"), source).table);
  return speed;
}

}  // namespace hearth
