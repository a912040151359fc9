#include "report/heat_map.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/counted.h"
#include "report/axis.h"
#include "report/html.h"

namespace hearth {

const HeatScale kExpertLoadScale{
    {1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0},
    " and more",
    "Tokens of the fullest expert over the mean, by layer with experts: 1 is a perfect balance.",
    "tokens of the fullest expert over the mean",
    " with experts",
    "the fullest expert gets {0} times the mean on average, {1} times at most"};
const HeatScale kResidencyScale{
    {0, 12.5, 25, 37.5, 50, 62.5, 75, 87.5},
    "\u2013100 %",
    "Percent of a layer's weights that were on devices, mean over the time of a step.",
    "percent of the weights that were on devices",
    "",
    "{0} percent of the weights were on devices on average, {1} percent at most"};

namespace {

constexpr double kRow = 10;  // units of the drawing
constexpr int64_t kLabels = 12;

size_t level_of(const HeatScale& scale, double value) {
  const auto above = std::upper_bound(scale.levels.begin() + 1, scale.levels.end(), value);
  return static_cast<size_t>(above - scale.levels.begin()) - 1;
}

/// One path a colour: neighbours of one colour in a row are one rectangle.
std::string cells_svg(const HeatScale& scale, const std::vector<Series>& layers) {
  std::array<std::string, std::tuple_size_v<decltype(HeatScale::levels)>> paths;
  for (size_t row = 0; row < layers.size(); ++row) {
    const auto& buckets = layers[row].buckets;
    for (size_t i = 0; i < buckets.size();) {
      if (buckets[i].count == 0) {
        ++i;
        continue;
      }
      const size_t level = level_of(scale, buckets[i].mean()), begin = i;
      while (i < buckets.size() && buckets[i].count > 0 &&
             level_of(scale, buckets[i].mean()) == level) {
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

std::string legend_html(const HeatScale& scale) {
  std::string items;
  for (size_t level = 0; level < scale.levels.size(); ++level) {
    const bool last = level + 1 == scale.levels.size();
    items += fmt::format(
        "<li><svg viewBox=\"0 0 16 10\" aria-hidden=\"true\"><path class=\"h{}\" d=\"M0 "
        "0h16v10h-16z\"/></svg>{}</li>",
        level,
        last ? number_text(scale.levels[level]) + std::string(scale.last)
             : number_text(scale.levels[level]) + "\u2013" + number_text(scale.levels[level + 1]));
  }
  return "<ul class=\"legend heat\">" + items + "</ul>";
}

std::string table_html(const HeatScale& scale, const std::vector<Series>& layers) {
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
  return "<details><summary>Values as a table</summary><div class=\"tables\"><table><caption>" +
         std::string(scale.caption) +
         "</caption><thead><tr><th scope=\"col\">layer</th><th scope=\"col\">beginning</th><th "
         "scope=\"col\">end</th><th scope=\"col\">mean</th><th "
         "scope=\"col\">greatest</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></details>";
}

}  // namespace

std::string heat_map_html(const std::string& id, const std::string& title, const HeatScale& scale,
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
      title + ". " + counted(rows, "layer") + std::string(scale.rows) + "; " +
      fmt::format(fmt::runtime(scale.summary), number_text(sum / static_cast<double>(count)),
                  number_text(most)) +
      ". The table below has the values.";
  return fmt::format(
             "<figure class=\"card chart wide\" id=\"{}\"><figcaption><h3>{}</h3><p>{}{}</p>"
             "</figcaption>\n{}<p class=\"unit\" aria-hidden=\"true\">layer</p>",
             id, escaped(title), scale.about,
             axis.buckets < axis.last - axis.first + 1 ? " A cell is the mean of its steps." : "",
             legend_html(scale)) +
         fmt::format(
             "<div class=\"plot heat\" tabindex=\"0\" data-heat=\"{}\" role=\"img\" "
             "aria-label=\"{}\" style=\"height:{}rem\"><svg viewBox=\"0 0 {} {}\" "
             "preserveAspectRatio=\"none\" aria-hidden=\"true\" shape-rendering=\"crispEdges\">",
             id, escaped(summary), std::clamp<int64_t>(rows / 2, 6, 30), axis.buckets,
             static_cast<double>(rows) * kRow) +
         cells_svg(scale, layers) + "</svg><div aria-hidden=\"true\">" + labels +
         "<span class=\"xl\">step</span></div></div>" + table_html(scale, layers) + "</figure>\n";
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
