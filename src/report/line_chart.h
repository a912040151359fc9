// A chart over steps: static SVG with axes, a legend and a table of the values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/series.h"

namespace hearth {

struct ChartLine {
  std::string name;
  const Series* series = nullptr;
  int colour = 0;       // 0 to 3
  bool dashed = false;  // distinguishes lines without colour
  bool dots = false;    // draw a mark at every value
};

/// A horizontal line ("clipped at").
struct ChartLevel {
  std::string name;
  double value = 0;
};

/// Steps to mark on the axis.
struct ChartMarks {
  std::string name;
  bool is_alarm = false;  // drawn as crosses; else as dashed lines
  std::vector<int64_t> steps;
};

struct LineChart {
  std::string id;  // unique in the page
  std::string title;
  std::string unit;   // unit of the vertical axis
  std::string about;  // a sentence below the title
  std::vector<ChartLine> lines;
  std::vector<ChartLevel> levels = {};
  std::vector<ChartMarks> marks = {};
  bool from_zero = false;
  bool wide = false;
  double epochs_per_step = 0;  // a second row of labels below the axis; 0: none
};

/// The figure; empty if no line has a value. Draws the mean of each bucket, over the range from its
/// least to its greatest value.
std::string chart_html(const LineChart& chart);

/// The values of the charts for pointer read-outs: a JSON object by id.
std::string chart_data(const std::vector<LineChart>& charts);

}  // namespace hearth
