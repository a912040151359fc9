// Expert load by layer over time.
#pragma once

#include <string>
#include <vector>

#include "report/series.h"

namespace hearth {

/// A figure with one row per MoE layer: tokens of the busiest expert / mean, 1 if balanced. Colour
/// levels are fixed, so two runs compare. Empty without values.
std::string heat_map_html(const std::string& id, const std::string& title,
                          const std::vector<Series>& layers);

/// The values for pointer read-outs: a JSON object.
std::string heat_map_data(const std::vector<Series>& layers);

}  // namespace hearth
