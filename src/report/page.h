// The page of a run: one self-contained HTML file, readable without scripts.
#pragma once

#include <string>
#include <vector>

#include "report/line_chart.h"
#include "report/run_history.h"
#include "report/sections.h"

namespace hearth {

std::string report_page(const RunHistory& run, const OptionDefaults& defaults);

/// The document around `body`. The script reads values from `charts` and `heat_maps` (a JSON object
/// by id).
std::string document(const std::string& title, const std::string& body,
                     const std::vector<LineChart>& charts, const std::string& heat_maps);

}  // namespace hearth
