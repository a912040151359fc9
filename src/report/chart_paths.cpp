#include "report/chart_paths.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "report/html.h"

namespace hearth {
namespace {

/// Calls `use(first, end)` for each range of buckets without a gap. Where steps lack an entry now and
/// then (evaluations), a line goes on over the gap: `dots` shows what was measured.
template <class Use>
void for_each_stretch(const ChartLine& line, const Use& use) {
  const std::vector<Bucket>& buckets = line.series->buckets;
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].count == 0) continue;
    std::vector<size_t> stretch;
    for (; i < buckets.size() && (buckets[i].count > 0 || line.dots); ++i) {
      if (buckets[i].count > 0) stretch.push_back(i);
    }
    use(stretch);
  }
}

class Pen {
 public:
  Pen(const Series& series, const Axis& x, const Axis& y) : series_(series), x_(x), y_(y) {}
  std::string point(size_t bucket, double value) const {
    const double at = x_.at(series_.axis.middle_of(static_cast<int64_t>(bucket)));
    return short_number(kChartWidth * at) + " " + short_number(kChartHeight * (1 - y_.at(value)));
  }

 private:
  static std::string short_number(double value) {
    std::string text = fmt::format("{:.1f}", value);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  }
  const Series& series_;
  const Axis &x_, &y_;
};

std::string steps_text(const StepAxis& axis, int64_t first_bucket, int64_t end_bucket) {
  const int64_t first = axis.begin_of(first_bucket), last = axis.begin_of(end_bucket) - 1;
  return first == last ? count_text(first) : count_text(first) + " to " + count_text(last);
}

Bucket joined(const Series& series, int64_t first, int64_t end) {
  Bucket all;
  for (int64_t i = first; i < end; ++i) {
    const Bucket& bucket = series.buckets[static_cast<size_t>(i)];
    if (bucket.count == 0) continue;
    all.min = std::min(all.min, bucket.min);
    all.max = std::max(all.max, bucket.max);
    all.sum += bucket.sum;
    all.count += bucket.count;
  }
  return all;
}

std::string line_table(const ChartLine& line, int64_t most) {
  const Series& series = *line.series;
  std::vector<int64_t> filled;  // buckets with values
  for (size_t i = 0; i < series.buckets.size(); ++i) {
    if (series.buckets[i].count > 0) filled.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(filled.size());
  const int64_t rows = std::min(count, most);
  const bool single = series.all.count == count && rows == count;
  std::string text = "<table><caption>" + escaped(line.name) +
                     "</caption><thead><tr><th scope=\"col\">step</th><th scope=\"col\">" +
                     (single ? "value</th>"
                             : "mean</th><th scope=\"col\">least</th><th scope=\"col\">greatest"
                               "</th>") +
                     "</tr></thead><tbody>";
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = filled[static_cast<size_t>(row * count / rows)];
    const int64_t end = filled[static_cast<size_t>((row + 1) * count / rows) - 1] + 1;
    const Bucket bucket = joined(series, first, end);
    text += "<tr><th scope=\"row\">" + steps_text(series.axis, first, end) + "</th><td>" +
            number_text(bucket.mean()) + "</td>";
    if (!single) {
      text += "<td>" + number_text(bucket.min) + "</td><td>" + number_text(bucket.max) + "</td>";
    }
    text += "</tr>";
  }
  return text + "</tbody></table>";
}

}  // namespace

std::string band_svg(const ChartLine& line, const Axis& x, const Axis& y) {
  const Series& series = *line.series;
  const bool spread = std::any_of(series.buckets.begin(), series.buckets.end(),
                                  [](const Bucket& b) { return b.count > 1 && b.min < b.max; });
  if (!spread) return "";
  const Pen pen(series, x, y);
  std::string path;
  for_each_stretch(line, [&](const std::vector<size_t>& stretch) {
    for (const size_t i : stretch) {
      path += (i == stretch.front() ? "M" : "L") + pen.point(i, series.buckets[i].max);
    }
    for (auto i = stretch.rbegin(); i != stretch.rend(); ++i) {
      path += "L" + pen.point(*i, series.buckets[*i].min);
    }
    path += "z";
  });
  return fmt::format("<path class=\"band c{}\" d=\"{}\"/>", line.colour, path);
}

std::string line_svg(const ChartLine& line, const Axis& x, const Axis& y) {
  const Series& series = *line.series;
  const Pen pen(series, x, y);
  std::string path, dots;
  for_each_stretch(line, [&](const std::vector<size_t>& stretch) {
    for (const size_t i : stretch) {
      const std::string point = pen.point(i, series.buckets[i].mean());
      path += (i == stretch.front() ? "M" : "L") + point;
      if (line.dots || stretch.size() == 1) dots += "M" + point + "h0";
    }
  });
  if (path.empty()) return "";
  std::string svg = fmt::format("<path class=\"line c{}{}\" d=\"{}\"/>", line.colour,
                                line.dashed ? " dashed" : "", path);
  if (!dots.empty()) svg += fmt::format("<path class=\"dot c{}\" d=\"{}\"/>", line.colour, dots);
  return svg;
}

std::string chart_summary(const LineChart& chart) {
  std::string text = chart.title + ".";
  for (const ChartLine& line : chart.lines) {
    const auto& buckets = line.series->buckets;
    const auto filled = [](const Bucket& b) { return b.count > 0; };
    const auto first = std::find_if(buckets.begin(), buckets.end(), filled);
    if (first == buckets.end()) continue;
    const auto last = std::find_if(buckets.rbegin(), buckets.rend(), filled);
    text += " " + line.name + ": " + number_text(first->mean()) + " at the beginning, " +
            number_text(last->mean()) + " at the end, between " +
            number_text(line.series->all.min) + " and " + number_text(line.series->all.max) + ".";
  }
  return text + " The table below has the values.";
}

std::string table_html(const LineChart& chart, int64_t most) {
  std::string tables;
  for (const ChartLine& line : chart.lines) {
    if (!line.series->empty()) tables += line_table(line, most);
  }
  return "<details><summary>Values as a table</summary><div class=\"tables\">" + tables +
         "</div></details>";
}

std::string chart_data(const std::vector<LineChart>& charts) {
  std::string text = "{";
  for (const LineChart& chart : charts) {
    text += (text.size() == 1 ? "\"" : ",\n\"") + chart.id + "\":[";
    bool first_line = true;
    for (const ChartLine& line : chart.lines) {
      if (line.series->empty()) continue;
      const Series& series = *line.series;
      const bool single = series.axis.buckets == series.axis.last - series.axis.first + 1;
      std::string steps, means, least, most;
      for (size_t i = 0; i < series.buckets.size(); ++i) {
        const Bucket& bucket = series.buckets[i];
        if (bucket.count == 0) continue;
        const char* comma = steps.empty() ? "" : ",";
        const auto number = [&](double value) {
          return bucket.count == 1 ? exact_number(value) : fmt::format("{:.5g}", value);
        };
        const int64_t begin = series.axis.begin_of(static_cast<int64_t>(i));
        steps += comma + std::to_string(begin);
        means += comma + number(bucket.mean());
        if (single) continue;
        least += comma + number(bucket.min);
        most += comma + number(bucket.max);
      }
      text += std::string(first_line ? "" : ",") + "{\"name\":" + Json(line.name).dump() +
              ",\"width\":" +
              exact_number(static_cast<double>(series.axis.last - series.axis.first + 1) /
                           static_cast<double>(series.axis.buckets)) +
              ",\"step\":[" + steps + "],\"mean\":[" + means + "]";
      if (!single) text += ",\"min\":[" + least + "],\"max\":[" + most + "]";
      text += "}";
      first_line = false;
    }
    text += "]";
  }
  return text + "}";
}

}  // namespace hearth
