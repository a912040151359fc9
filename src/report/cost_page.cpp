#include "report/cost_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/axis.h"
#include "report/html.h"
#include "report/page.h"

namespace hearth {
namespace {

constexpr double kWidth = 1000, kHeight = 300;  // of the drawing, which the browser stretches
constexpr size_t kColours = 4;                  // of the style sheet

/// Units per second.
double rate(const CostCurve& curve, size_t i) { return curve.units[i] / curve.seconds[i]; }

/// Seconds at a number of units: linear between points, as cost tables are read.
double seconds_at(const CostCurve& curve, double units) {
  const auto next = std::lower_bound(curve.units.begin(), curve.units.end(), units);
  const auto i = static_cast<size_t>(next - curve.units.begin());
  if (i == 0) return curve.seconds.front();
  if (i == curve.units.size()) return curve.seconds.back() * units / curve.units.back();
  const double share = (units - curve.units[i - 1]) / (curve.units[i] - curve.units[i - 1]);
  return curve.seconds[i - 1] + share * (curve.seconds[i] - curve.seconds[i - 1]);
}

std::string line_svg(const CostCurve& curve, size_t colour, const Axis& x, const Axis& y) {
  std::string line, dots;
  for (size_t i = 0; i < curve.units.size(); ++i) {
    const double across = kWidth * x.at(curve.units[i]);
    const double up = kHeight * (1 - y.at(rate(curve, i)));
    line += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", across, up);
    dots += fmt::format("M{:.1f} {:.1f}h0", across, up);
  }
  const char* dashed = colour >= kColours ? " dashed" : "";
  const size_t shown = colour % kColours;
  return fmt::format("<path class=\"line c{0}{1}\" d=\"{2}\"/><path class=\"dot c{0}\" d=\"{3}\"/>",
                     shown, dashed, line, dots);
}

std::string legend_html(const CostChart& chart) {
  std::string items;
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    items += fmt::format(
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line c{}{}\" "
        "d=\"M1 5h26\"/></svg>{}</li>",
        i % kColours, i >= kColours ? " dashed" : "", escaped(chart.curves[i].name));
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string plot_html(const CostChart& chart, const Axis& x, const Axis& y) {
  std::string grid, soft, lines, labels;
  for (const Tick& tick : y.ticks()) {
    grid += fmt::format("M0 {:.1f}h{:.0f}", kHeight * (1 - tick.at), kWidth);
    labels += fmt::format("<span class=\"yt\" style=\"bottom:{:.2f}%\">{}</span>", 100 * tick.at,
                          tick.label);
  }
  for (size_t i = 0; i < x.ticks().size(); ++i) {
    const Tick& tick = x.ticks()[i];
    soft += fmt::format("M{:.1f} 0v{:.0f}", kWidth * tick.at, kHeight);
    labels += fmt::format("<span class=\"xt{}\" style=\"left:{:.2f}%\">{}</span>",
                          i % 2 ? " odd" : "", 100 * tick.at, tick.label);
  }
  for (size_t i = 0; i < chart.curves.size(); ++i) lines += line_svg(chart.curves[i], i, x, y);
  return fmt::format(
      "<div class=\"plot lin\" role=\"img\" aria-label=\"{}: rate by size, both axes "
      "logarithmic; the table below has the values\"><svg viewBox=\"0 0 1000 300\" "
      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"grid\" d=\"{}\"/><path "
      "class=\"grid soft\" d=\"{}\"/>{}</svg><div aria-hidden=\"true\">{}<span "
      "class=\"xl\">{}</span></div></div>",
      escaped(chart.title), grid, soft, lines, labels, escaped(chart.unit));
}

std::string table_html(const CostChart& chart) {
  std::string rows;
  for (const CostCurve& curve : chart.curves) {
    for (size_t i = 0; i < curve.units.size(); ++i) {
      rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                          escaped(curve.name), number_text(curve.units[i]),
                          number_text(curve.seconds[i]), number_text(rate(curve, i)));
    }
  }
  return "<details><summary>Values as a table</summary><div "
         "class=\"tables\"><table><thead><tr><th>place</th>"
         "<th>" +
         escaped(chart.unit) + "</th><th>seconds</th><th>per second</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

/// From how many units on each curve beats the first.
std::string break_even_html(const CostChart& chart) {
  std::string text;
  for (size_t i = 1; i < chart.curves.size(); ++i) {
    const double units = break_even(chart.curves[0], chart.curves[i]);
    text += "<br>" + escaped(chart.curves[i].name) + " is faster than " +
            escaped(chart.curves[0].name) + " ";
    if (units == 0) {
      text += "at every size";
    } else if (std::isinf(units)) {
      text += "at no size measured";
    } else {
      text += "from " + number_text(std::ceil(units)) + " " + escaped(chart.unit) + " on";
    }
    text += ".";
  }
  return text;
}

std::string figure_html(const CostChart& chart) {
  double units_least = std::numeric_limits<double>::infinity(), units_most = 0;
  double rate_least = units_least, rate_most = 0;
  for (const CostCurve& curve : chart.curves) {
    for (size_t i = 0; i < curve.units.size(); ++i) {
      units_least = std::min(units_least, curve.units[i]);
      units_most = std::max(units_most, curve.units[i]);
      rate_least = std::min(rate_least, rate(curve, i));
      rate_most = std::max(rate_most, rate(curve, i));
    }
  }
  if (units_most == 0) return {};
  const Axis x = Axis::logarithmic(units_least, units_most);
  const Axis y = Axis::logarithmic(rate_least, rate_most);
  return fmt::format(
             "<figure class=\"card chart\" id=\"{}\"><figcaption><h3>{}</h3><p>Rate by "
             "size.{}</p></figcaption>\n",
             chart.id, escaped(chart.title), break_even_html(chart)) +
         legend_html(chart) + "<p class=\"unit\" aria-hidden=\"true\">" + escaped(chart.unit) +
         " per second</p>\n" + plot_html(chart, x, y) + table_html(chart) + "</figure>\n";
}

}  // namespace

double break_even(const CostCurve& a, const CostCurve& b) {
  std::vector<double> sizes = a.units;
  sizes.insert(sizes.end(), b.units.begin(), b.units.end());
  std::sort(sizes.begin(), sizes.end());
  const auto lead = [&](double units) { return seconds_at(a, units) - seconds_at(b, units); };
  if (lead(sizes.back()) <= 0) return std::numeric_limits<double>::infinity();
  for (size_t i = sizes.size() - 1; i-- > 0;) {
    const double low = lead(sizes[i]);
    if (low > 0) continue;
    const double high = lead(sizes[i + 1]);  // both curves are lines in between
    return sizes[i] + (sizes[i + 1] - sizes[i]) * (0 - low) / (high - low);
  }
  return 0;
}

std::string cost_page(const std::string& title, const std::vector<CostFact>& facts,
                      const std::vector<CostChart>& charts) {
  std::string body = "<header><h1>" + escaped(title) + "</h1></header>\n<div class=\"grid\">\n";
  std::string rows;
  for (const CostFact& fact : facts) {
    rows += "<tr><th scope=\"row\">" + escaped(fact.name) + "</th><td>" + escaped(fact.value) +
            "</td></tr>";
  }
  body += "<section class=\"card wide\"><h2>The machine</h2><table class=\"facts\"><tbody>" + rows +
          "</tbody></table></section>\n";
  for (const CostChart& chart : charts) body += figure_html(chart);
  return document(title + " \u2013 hearth profile", body + "</div>\n", {}, "{}");
}

}  // namespace hearth
