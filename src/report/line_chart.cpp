#include "report/line_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "report/axis.h"
#include "report/chart_paths.h"
#include "report/html.h"

namespace hearth {
namespace {

constexpr int64_t kTableRows = 40;

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
};

bool has_values(const LineChart& chart) {
  return std::any_of(chart.lines.begin(), chart.lines.end(),
                     [](const ChartLine& line) { return !line.series->empty(); });
}

Range values_of(const LineChart& chart) {
  Range range;
  for (const ChartLine& line : chart.lines) {
    range.least = std::min(range.least, line.series->all.min);
    range.most = std::max(range.most, line.series->all.max);
  }
  // A level is shown where it does not flatten what is measured.
  for (const ChartLevel& level : chart.levels) {
    if (level.value > 3 * range.most) continue;
    range.least = std::min(range.least, level.value);
    range.most = std::max(range.most, level.value);
  }
  return range;
}

Range steps_of(const LineChart& chart) {
  Range range;
  for (const ChartLine& line : chart.lines) {
    if (line.series->empty()) continue;
    range.least = std::min(range.least, static_cast<double>(line.series->axis.first));
    range.most = std::max(range.most, static_cast<double>(line.series->axis.last));
  }
  return range;
}

/// The median of the means: far below a spike.
double usual_value(const LineChart& chart) {
  std::vector<double> means;
  for (const ChartLine& line : chart.lines) {
    for (const Bucket& bucket : line.series->buckets) {
      if (bucket.count > 0) means.push_back(bucket.mean());
    }
  }
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  return *middle;
}

std::string grid_svg(const Axis& x, const Axis& y) {
  std::string across, up;
  for (const Tick& tick : y.ticks()) {
    across += fmt::format("M0 {:.1f}h{:.0f}", kChartHeight * (1 - tick.at), kChartWidth);
  }
  for (const Tick& tick : x.ticks()) {
    up += fmt::format("M{:.1f} 0v{:.0f}", kChartWidth * tick.at, kChartHeight);
  }
  return fmt::format("<path class=\"grid\" d=\"{}\"/><path class=\"grid soft\" d=\"{}\"/>", across,
                     up);
}

std::string marks_svg(const LineChart& chart, const Axis& x) {
  std::string svg;
  for (const ChartMarks& marks : chart.marks) {
    if (marks.steps.empty()) continue;
    std::string path;
    for (const int64_t step : marks.steps) {
      const double at = kChartWidth * x.at(static_cast<double>(step));
      path += marks.is_alarm ? fmt::format("M{:.1f} {:.0f}v8", at, kChartHeight - 8)
                             : fmt::format("M{:.1f} 0v{:.0f}", at, kChartHeight);
    }
    svg += std::string("<path class=\"mark ") + (marks.is_alarm ? "alarm" : "event") + "\" d=\"" +
           path + "\"/>";
  }
  return svg;
}

std::string plot_html(const LineChart& chart, const Axis& x, const Axis& y, bool second) {
  std::string svg;
  for (const ChartLevel& level : chart.levels) {
    const double at = y.at(level.value);
    if (at < 0 || at > 1) continue;
    svg += fmt::format("<path class=\"level\" d=\"M0 {:.1f}h{:.0f}\"/>", kChartHeight * (1 - at),
                       kChartWidth);
  }
  for (const ChartLine& line : chart.lines) svg += band_svg(line, x, y);
  for (const ChartLine& line : chart.lines) svg += line_svg(line, x, y);
  std::string labels;
  for (const Tick& tick : y.ticks()) {
    labels += fmt::format("<span class=\"yt\" style=\"bottom:{:.2f}%\">{}</span>", 100 * tick.at,
                          tick.label);
  }
  for (size_t i = 0; i < x.ticks().size(); ++i) {
    labels += fmt::format("<span class=\"xt{}\" style=\"left:{:.2f}%\">{}</span>",
                          i % 2 ? " odd" : "", 100 * x.ticks()[i].at, x.ticks()[i].label);
    if (chart.epochs_per_step <= 0) continue;
    const double step = x.low() + x.ticks()[i].at * (x.high() - x.low());
    labels += fmt::format("<span class=\"xt epoch{}\" style=\"left:{:.2f}%\">{:.3g}</span>",
                          i % 2 ? " odd" : "", 100 * x.ticks()[i].at, chart.epochs_per_step * step);
  }
  if (chart.epochs_per_step > 0) labels += "<span class=\"xe\">epoch</span>";
  return fmt::format(
             "<div class=\"plot {}{}\" tabindex=\"0\" data-chart=\"{}\" data-x0=\"{}\" "
             "data-x1=\"{}\" "
             "role=\"img\" aria-label=\"{}\">",
             second ? "log" : "lin", chart.epochs_per_step > 0 ? " epochs" : "", chart.id,
             exact_number(x.low()), exact_number(x.high()), escaped(chart_summary(chart))) +
         "<svg viewBox=\"0 0 1000 300\" preserveAspectRatio=\"none\" aria-hidden=\"true\">" +
         grid_svg(x, y) + svg + marks_svg(chart, x) + "</svg><div aria-hidden=\"true\">" + labels +
         "<span class=\"xl\">step</span></div></div>";
}

std::string legend_html(const LineChart& chart) {
  std::string items;
  bool banded = false;
  for (const ChartLine& line : chart.lines) {
    if (line.series->empty()) continue;
    banded = banded || line.series->axis.buckets < line.series->axis.last - line.series->axis.first;
    items += fmt::format(
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line c{}{}\" "
        "d=\"M1 5h26\"/>{}</svg>{}</li>",
        line.colour, line.dashed ? " dashed" : "",
        line.dots ? fmt::format("<path class=\"dot c{}\" d=\"M14 5h0\"/>", line.colour) : "",
        escaped(line.name));
  }
  if (banded) {
    items +=
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"band c0\" "
        "d=\"M1 0h26v10h-26z\"/></svg>range (least to greatest)</li>";
  }
  for (const ChartLevel& level : chart.levels) {
    items +=
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"level\" d=\"M1 "
        "5h26\"/></svg>" +
        escaped(level.name) + " (" + number_text(level.value) + ")</li>";
  }
  for (const ChartMarks& marks : chart.marks) {
    if (marks.steps.empty()) continue;
    items += fmt::format(
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"mark {}\" d=\"M14 "
        "0v10\"/></svg>{}</li>",
        marks.is_alarm ? "alarm" : "event", escaped(marks.name));
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

}  // namespace

std::string chart_html(const LineChart& chart) {
  if (!has_values(chart)) return "";
  const Range steps = steps_of(chart), values = values_of(chart);
  const Axis x = Axis::steps(steps.least, steps.most);
  const Axis linear = Axis::linear(values.least, values.most, chart.from_zero);
  const bool logarithmic = values.least > 0 && values.most > 8 * values.least;
  std::string inputs, labels;
  std::string plots = plot_html(chart, x, linear, false);
  if (logarithmic) {
    const bool log_first = values.most > 30 * usual_value(chart);
    const auto add = [&](const char* kind, const char* name, bool checked) {
      inputs += fmt::format(
          "<input type=\"radio\" class=\"scale to-{0}\" name=\"{1}-scale\" id=\"{1}-{0}\"{2}>",
          kind, chart.id, checked ? " checked" : "");
      labels += fmt::format("<label for=\"{}-{}\" class=\"for-{}\">{}</label>", chart.id, kind,
                            kind, name);
    };
    add("lin", "linear", !log_first);
    add("log", "logarithmic", log_first);
    labels = "<span class=\"scales\">" + labels + "</span>";
    plots += plot_html(chart, x, Axis::logarithmic(values.least, values.most), true);
  }
  return fmt::format(
             "<figure class=\"card chart{}\" id=\"{}\">{}<figcaption>{}<h3>{}</h3><p>{}</p>"
             "</figcaption>\n",
             chart.wide ? " wide" : "", chart.id, inputs, labels, escaped(chart.title),
             escaped(chart.about)) +
         legend_html(chart) + "<p class=\"unit\" aria-hidden=\"true\">" + escaped(chart.unit) +
         "</p>\n" + plots + table_html(chart, kTableRows) + "</figure>\n";
}

}  // namespace hearth
