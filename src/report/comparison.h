// The page that compares two runs.
#pragma once

#include <string>

#include "report/run_history.h"
#include "report/sections.h"

namespace hearth {

/// Draws the curves of both runs in the same charts; figures and differing options side by side.
std::string comparison_page(const RunHistory& a, const RunHistory& b,
                            const OptionDefaults& defaults);

}  // namespace hearth
