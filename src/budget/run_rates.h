// What a plan knows of the speed of the machine: cost tables, and rates of what has no table.
#pragma once

#include <memory>
#include <vector>

#include "budget/placed_model.h"

namespace hearth {

/// Gives each place that computes a cost table, as far as it has none (budget/start_tables.h), and
/// returns all that a prediction needs. Call before planning and before memory is reserved.
/// If the memory is too small for a table, rates of ops are measured instead, at each start. They
/// use a quarter of the process's remaining budget, at most 192 MiB, and of a GPU's budget a quarter,
/// at most 8 GiB. A device in the host's memory gives none of its budget. Usage error if a device is
/// too small. `model.tables.best` is measured if it is unknown and a place is not paced. With
/// HEARTH_RATES=assumed in the environment it returns round numbers and measures nothing. Measures
/// nothing for a described machine either.
RunRates measure_run(PlacedModel& model, const PlanRequest& request);

/// RAII, for tests: while one exists, `measure_run` returns round numbers and measures nothing. A
/// measurement takes half a second, and tests start hundreds of runs. Results of runs do not
/// change.
class AssumedRates {
 public:
  AssumedRates();
  ~AssumedRates();
  AssumedRates(const AssumedRates&) = delete;
  AssumedRates& operator=(const AssumedRates&) = delete;
};
/// Whether nothing is measured: for HEARTH_RATES=assumed, or while an AssumedRates exists.
bool rates_are_assumed();
/// Whether HEARTH_RATES=assumed.
bool user_assumed_rates();

/// The table by which a plan times the tasks of a place: that of costs=, else the run's. Null: none.
std::shared_ptr<const CostTable> table_at(const PlacedModel& model, Place at);
/// The same for all places.
std::vector<PlaceCosts> cost_tables(const PlacedModel& model);
/// The tables of costs= alone.
std::vector<PlaceCosts> pacing_tables(const PlacedModel& model);

}  // namespace hearth
