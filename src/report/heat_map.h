// Expert load by layer over time.
#pragma once

#include <string>
#include <vector>

#include "report/series.h"

namespace hearth {

/// A figure with a row a MoE layer: the tokens of the fullest expert over the mean, 1 where all have
/// the same. Fixed levels, so that the colours of two runs compare. Empty without values.
std::string heat_map_html(const std::string& id, const std::string& title,
                          const std::vector<Series>& layers);

/// The values for read-outs under the pointer: a JSON object.
std::string heat_map_data(const std::vector<Series>& layers);

}  // namespace hearth
