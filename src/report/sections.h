// The parts of a page that are not charts.
#pragma once

#include <map>
#include <string>

#include "report/run_history.h"

namespace hearth {

/// Default values by option name, in the form of config.yaml.
using OptionDefaults = std::map<std::string, std::string>;

std::string evaluations_section(const RunHistory& run);
/// Busy seconds by resource.
std::string resources_section(const RunHistory& run);
/// The plan's memory lines with measurements.
std::string memory_section(const RunHistory& run);
std::string samples_section(const RunHistory& run);
std::string events_section(const RunHistory& run);
/// Options that differ from their default come first.
std::string configuration_section(const RunHistory& run, const OptionDefaults& defaults);

}  // namespace hearth
