// The page of two runs.
#pragma once

#include <string>

#include "report/run_history.h"
#include "report/sections.h"

namespace hearth {

/// Two runs over each other: curves in the same charts, figures and differing options side by side.
std::string comparison_page(const RunHistory& a, const RunHistory& b,
                            const OptionDefaults& defaults);

}  // namespace hearth
