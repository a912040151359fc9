// Values by layer over time: expert load, residency.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "report/series.h"

namespace hearth {

/// What a heat map shows. Colour levels are fixed, so two runs compare.
struct HeatScale {
  std::array<double, 8> levels;  // a colour begins at each of these
  std::string_view last;         // what follows the last of them in the legend
  std::string_view about;        // a sentence: the value and its unit
  std::string_view caption;      // of the table: the value
  std::string_view rows;         // behind "layer" or "layers": which
  /// Of a summary, with {0} for the mean of all values and {1} for the greatest.
  std::string_view summary;
};
/// Tokens of the busiest expert / mean, 1 if balanced; a row per MoE layer.
extern const HeatScale kExpertLoadScale;
/// Percent of a layer's weights that were on devices; a row per layer.
extern const HeatScale kResidencyScale;

/// A figure with one row per layer. Empty without values.
std::string heat_map_html(const std::string& id, const std::string& title, const HeatScale& scale,
                          const std::vector<Series>& layers);

/// The values for pointer read-outs: a JSON object.
std::string heat_map_data(const std::vector<Series>& layers);

}  // namespace hearth
