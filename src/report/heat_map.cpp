#include "report/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/counted.h"
#include "report/axis.h"
#include "report/html.h"

namespace hearth {
namespace {

/// A colour begins at each of these.
constexpr std::array kLevels{1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0};
constexpr double kRow = 10;  // units of the drawing
constexpr int64_t kLabels = 12;

size_t level_of(double load) {
  const auto above = std::upper_bound(kLevels.begin() + 1, kLevels.end(), load);
  return static_cast<size_t>(above - kLevels.begin()) - 1;
}

/// One path a colour: neighbours of one colour in a row are one rectangle.
std::string cells_svg(const std::vector<Series>& layers) {
  std::array<std::string, kLevels.size()> paths;
  for (size_t row = 0; row < layers.size(); ++row) {
    const auto& buckets = layers[row].buckets;
    for (size_t i = 0; i < buckets.size();) {
      if (buckets[i].count == 0) {
        ++i;
        continue;
      }
      const size_t level = level_of(buckets[i].mean()), begin = i;
      while (i < buckets.size() && buckets[i].count > 0 && level_of(buckets[i].mean()) == level) {
        ++i;
      }
      paths[level] += fmt::format("M{} {}h{}v{}h-{}z", begin, static_cast<double>(row) * kRow,
                                  i - begin, kRow, i - begin);
    }
  }
  std::string svg;
  for (size_t level = 0; level < paths.size(); ++level) {
    if (paths[level].empty()) continue;
    svg += fmt::format("<path class=\"h{}\" d=\"{}\"/>", level, paths[level]);
  }
  return svg;
}

std::string legend_html() {
  std::string items;
  for (size_t level = 0; level < kLevels.size(); ++level) {
    const bool last = level + 1 == kLevels.size();
    items += fmt::format(
        "<li><svg viewBox=\"0 0 16 10\" aria-hidden=\"true\"><path class=\"h{}\" d=\"M0 "
        "0h16v10h-16z\"/></svg>{}</li>",
        level,
        last ? number_text(kLevels[level]) + " and more"
             : number_text(kLevels[level]) + "\u2013" + number_text(kLevels[level + 1]));
  }
  return "<ul class=\"legend heat\">" + items + "</ul>";
}

std::string table_html(const std::vector<Series>& layers) {
  std::string rows;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].empty()) continue;
    const auto filled = [](const Bucket& b) { return b.count > 0; };
    const auto& buckets = layers[i].buckets;
    const auto first = std::find_if(buckets.begin(), buckets.end(), filled);
    const auto last = std::find_if(buckets.rbegin(), buckets.rend(), filled);
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", i,
        number_text(first->mean()), number_text(last->mean()), number_text(layers[i].all.mean()),
        number_text(layers[i].all.max));
  }
  return "<details><summary>Values as a table</summary><div "
         "class=\"tables\"><table><caption>tokens "
         "of the fullest expert over the mean</caption><thead><tr><th scope=\"col\">layer</th><th "
         "scope=\"col\">beginning</th><th scope=\"col\">end</th><th scope=\"col\">mean</th><th "
         "scope=\"col\">greatest</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

}  // namespace

std::string heat_map_html(const std::string& id, const std::string& title,
                          const std::vector<Series>& layers) {
  const bool any =
      std::any_of(layers.begin(), layers.end(), [](const Series& layer) { return !layer.empty(); });
  if (!any) return "";
  const StepAxis& axis = layers[0].axis;
  const Axis x = Axis::steps(static_cast<double>(axis.first), static_cast<double>(axis.last));
  const auto rows = static_cast<int64_t>(layers.size());
  double sum = 0, most = 0;
  int64_t count = 0;
  for (const Series& layer : layers) {
    if (layer.empty()) continue;
    sum += layer.all.sum;
    count += layer.all.count;
    most = std::max(most, layer.all.max);
  }
  std::string labels;
  const int64_t every = (rows + kLabels - 1) / kLabels;
  for (int64_t row = 0; row < rows; row += every) {
    labels +=
        fmt::format("<span class=\"yt\" style=\"bottom:{:.2f}%\">{}</span>",
                    100 * (1 - (static_cast<double>(row) + 0.5) / static_cast<double>(rows)), row);
  }
  // Columns are whole buckets, so a step lies in the middle of its part of the axis.
  const double span = static_cast<double>(axis.last - axis.first + 1);
  for (size_t i = 0; i < x.ticks().size(); ++i) {
    const double step = x.low() + x.ticks()[i].at * (x.high() - x.low());
    const double at = (step - static_cast<double>(axis.first) + 0.5) / span;
    labels += fmt::format("<span class=\"xt{}\" style=\"left:{:.2f}%\">{}</span>",
                          i % 2 ? " odd" : "", 100 * at, x.ticks()[i].label);
  }
  const std::string summary =
      title + ". " + counted(rows, "layer") + " with experts; the fullest expert gets " +
      number_text(sum / static_cast<double>(count)) + " times the mean on average, " +
      number_text(most) + " times at most. The table below has the values.";
  return fmt::format(
             "<figure class=\"card chart wide\" id=\"{}\"><figcaption><h3>{}</h3><p>Tokens of the "
             "fullest expert over the mean, by layer with experts: 1 is a perfect balance.{}</p>"
             "</figcaption>\n{}<p class=\"unit\" aria-hidden=\"true\">layer</p>",
             id, escaped(title),
             axis.buckets < axis.last - axis.first + 1 ? " A cell is the mean of its steps." : "",
             legend_html()) +
         fmt::format(
             "<div class=\"plot heat\" tabindex=\"0\" data-heat=\"{}\" role=\"img\" "
             "aria-label=\"{}\" style=\"height:{}rem\"><svg viewBox=\"0 0 {} {}\" "
             "preserveAspectRatio=\"none\" aria-hidden=\"true\" shape-rendering=\"crispEdges\">",
             id, escaped(summary), std::clamp<int64_t>(rows / 2, 6, 30), axis.buckets,
             static_cast<double>(rows) * kRow) +
         cells_svg(layers) + "</svg><div aria-hidden=\"true\">" + labels +
         "<span class=\"xl\">step</span></div></div>" + table_html(layers) + "</figure>\n";
}

std::string heat_map_data(const std::vector<Series>& layers) {
  std::string text = "{\"step\":[";
  if (!layers.empty()) {
    const StepAxis& axis = layers[0].axis;
    for (int64_t i = 0; i <= axis.buckets; ++i) {
      text += (i ? "," : "") + std::to_string(axis.begin_of(i));
    }
  }
  text += "],\"rows\":[";
  for (size_t row = 0; row < layers.size(); ++row) {
    text += row ? ",[" : "[";
    const auto& buckets = layers[row].buckets;
    for (size_t i = 0; i < buckets.size(); ++i) {
      text += (i ? "," : "") +
              (buckets[i].count > 0 ? fmt::format("{:.4g}", buckets[i].mean()) : "null");
    }
    text += "]";
  }
  return text + "]}";
}

}  // namespace hearth
