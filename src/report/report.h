// The page of a run: one self-contained HTML file, drawn here, that reads without scripts.
#pragma once

#include <string>

#include "report/run_history.h"
#include "report/sections.h"

namespace hearth {

std::string report_page(const RunHistory& run, const OptionDefaults& defaults);

/// Two runs over each other: curves in the same charts, figures and differing options side by side.
std::string comparison_page(const RunHistory& a, const RunHistory& b,
                            const OptionDefaults& defaults);

}  // namespace hearth
