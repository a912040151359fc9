// The parts of a chart that follow from its values. Private to line_chart.cpp.
#pragma once

#include "report/axis.h"
#include "report/line_chart.h"

namespace hearth {

// The drawing is stretched to the size of its place; strokes and letters are not.
inline constexpr double kChartWidth = 1000, kChartHeight = 300;

/// Least to greatest value of each bucket; empty where every bucket has one value at most.
std::string band_svg(const ChartLine& line, const Axis& x, const Axis& y);
/// The mean of each bucket.
std::string line_svg(const ChartLine& line, const Axis& x, const Axis& y);
/// A sentence that tells the chart: for those who do not see it.
std::string chart_summary(const LineChart& chart);
/// Its values in at most `most` rows, folded away.
std::string table_html(const LineChart& chart, int64_t most);

}  // namespace hearth
