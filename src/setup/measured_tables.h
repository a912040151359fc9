// Measures the cost tables of all places of a list of devices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/cost_table.h"
#include "runtime/place_profile.h"
#include "setup/opened_model.h"

namespace hearth {

/// What to measure, and how long.
struct TableRequest {
  const ModelSpec& spec;
  const ParameterTable& table;  // of the model; with what is trained
  RunSettings settings;         // all but the compute type
  std::vector<Compute> dtypes;  // the first is the more important
  int64_t longest = 2048;       // most tokens of a sequence
  int64_t most_tokens = 4096;   // of a micro-batch
  bool fewer_cores = true;      // of the host: also half of the cores, a quarter, ..., one
  double seconds = 60;          // in all; only the least table of a place may take longer
  uint64_t host_bytes = 0;      // most memory to use on the host
  /// Called after each measurement. Returns false to end early.
  std::function<bool(const std::string& what, double share)> progress = {};
};

struct MeasuredTable {
  std::string place;
  CostTable table;
  int64_t points = 0, samples = 0;
  std::optional<double> spread = {};       // PlaceProfile::spread
  std::vector<std::string> left_out = {};  // what the time did not allow
  bool noisy() const { return spread && *spread > kNoisy; }
};

/// One table per place, in the order of places. If there are devices, their links are measured
/// first, and tasks then run beside copies over all links. If the time is short, fewer cores
/// are left out before sizes, and less memory is used. Uses at most `host_bytes` on the
/// host, and half of the budget of a device, at most 4 GiB. Usage error if that is too little.
std::vector<MeasuredTable> measure_tables(const OpenedModel& machine, const TableRequest& request);

}  // namespace hearth
