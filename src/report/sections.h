// The parts of a page that are no charts.
#pragma once

#include <map>
#include <string>

#include "report/run_history.h"

namespace hearth {

/// Default values by option name, as config.yaml would have them.
using OptionDefaults = std::map<std::string, std::string>;

/// Name, state and figures of the run.
std::string header_section(const RunHistory& run);
/// What was trained on what, and where the files are.
std::string facts_section(const RunHistory& run);
/// Whether the run did what it was to do; empty where it has not ended.
std::string verdict_section(const RunHistory& run);
std::string evaluations_section(const RunHistory& run);
/// Busy seconds by resource.
std::string resources_section(const RunHistory& run);
/// The plan's lines with what was measured.
std::string memory_section(const RunHistory& run);
std::string samples_section(const RunHistory& run);
std::string events_section(const RunHistory& run);
/// What is not default first.
std::string configuration_section(const RunHistory& run, const OptionDefaults& defaults);

/// "finished", "stopped by a signal", ... as a badge.
std::string state_badge(const RunHistory& run);

}  // namespace hearth
