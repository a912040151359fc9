// The parts of a chart that depend on its values. Private to line_chart.cpp.
#pragma once

#include "report/axis.h"
#include "report/line_chart.h"

namespace hearth {

// Viewbox of the drawing. The browser stretches it to the page, but not strokes and letters.
inline constexpr double kChartWidth = 1000, kChartHeight = 300;

/// Area from the least to the greatest value of each bucket; empty if no bucket has several values.
std::string band_svg(const ChartLine& line, const Axis& x, const Axis& y);
/// Line through the mean of each bucket.
std::string line_svg(const ChartLine& line, const Axis& x, const Axis& y);
/// A sentence that describes the chart, for screen readers.
std::string chart_summary(const LineChart& chart);
/// A collapsed table of the values, at most `most` rows.
std::string table_html(const LineChart& chart, int64_t most);

}  // namespace hearth
