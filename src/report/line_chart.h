// A chart of quantities over steps: static SVG with its axes, a legend and a table of the values.
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
  bool dashed = false;  // told apart without colour, too
  bool dots = false;    // a mark at every value
};

/// A level that is drawn across ("clipped at").
struct ChartLevel {
  std::string name;
  double value = 0;
};

/// Steps that are marked on the axis.
struct ChartMarks {
  std::string name;
  bool is_alarm = false;  // crosses; else dashed lines
  std::vector<int64_t> steps;
};

struct LineChart {
  std::string id;  // unique in the page
  std::string title;
  std::string unit;   // what the vertical axis has
  std::string about;  // a sentence below the title
  std::vector<ChartLine> lines;
  std::vector<ChartLevel> levels = {};
  std::vector<ChartMarks> marks = {};
  bool from_zero = false;
  bool wide = false;
};

/// The figure; empty if no line has a value. Buckets of several steps are drawn as their mean, with
/// the range from their least to their greatest value behind it.
std::string chart_html(const LineChart& chart);

/// The values of the charts for read-outs under the pointer: a JSON object by id.
std::string chart_data(const std::vector<LineChart>& charts);

}  // namespace hearth
