#include "report/timeline_section.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/axis.h"
#include "report/html.h"

namespace hearth {
namespace {

constexpr size_t kMostStreams = 256, kMostBars = 20'000, kMostKinds = 200;
constexpr double kTimelineWidth = 1000, kLane = 16, kGap = 4, kLabel = 14;  // units of the drawing

struct Bar {
  size_t stream = 0;
  std::string name;
  double begin = 0, end = 0;  // seconds
};

struct Timelines {
  std::vector<std::string> streams;
  std::vector<Bar> predicted, executed;
  double step = 0;
};

std::string text_in(const Json& json, const char* key) {
  const Json* value = json.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

std::optional<double> number_in(const Json& json, const char* key) {
  const Json* value = json.find(key);
  return value && value->is_number() ? std::optional(value->as_double()) : std::nullopt;
}

std::vector<Bar> bars_of(const Json& timeline, const char* key, size_t streams) {
  std::vector<Bar> bars;
  const Json* list = timeline.find(key);
  if (list == nullptr || !list->is_array()) return bars;
  for (const Json& item : list->as_array()) {
    if (bars.size() == kMostBars) break;
    if (!item.is_array() || item.as_array().size() != 4) continue;
    const JsonArray& values = item.as_array();
    if (!values[0].is_signed() || !values[1].is_string() || !values[2].is_number() ||
        !values[3].is_number()) {
      continue;
    }
    const int64_t stream = values[0].as_int();
    const double begin = values[2].as_double() / 1e6, end = values[3].as_double() / 1e6;
    if (stream < 0 || stream >= static_cast<int64_t>(streams) || begin < 0 || end < begin) continue;
    bars.push_back({static_cast<size_t>(stream), values[1].as_string(), begin, end});
  }
  return bars;
}

Timelines timelines_of(const Json& plan) {
  Timelines result;
  const Json* timeline = plan.find("timeline");
  const Json* streams = timeline ? timeline->find("streams") : nullptr;
  if (streams == nullptr || !streams->is_array()) return result;
  for (const Json& stream : streams->as_array()) {
    if (result.streams.size() == kMostStreams) break;
    result.streams.push_back(text_in(stream, "place") + ", " + text_in(stream, "stream"));
  }
  result.step = number_in(*timeline, "step").value_or(0);
  result.predicted = bars_of(*timeline, "predicted", result.streams.size());
  result.executed = bars_of(*timeline, "executed", result.streams.size());
  return result;
}

/// Groups of tasks that share a colour.
constexpr std::array<const char*, 5> kGroups{"forward", "backward", "recompute", "copy",
                                             "norm, clip, update"};

size_t group_of(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("copy")) return 3;
  if (has("norm") || has("clip") || has("update")) return 4;
  return has("backward") ? 1 : has("recompute") ? 2 : 0;
}

double last_end(const std::vector<Bar>& bars) {
  double last = 0;
  for (const Bar& bar : bars) last = std::max(last, bar.end);
  return last;
}

/// The lanes that a timeline needs: streams that any of the two uses.
std::vector<size_t> used_streams(const Timelines& t) {
  std::vector<size_t> used;
  for (size_t s = 0; s < t.streams.size(); ++s) {
    const auto here = [&](const Bar& bar) { return bar.stream == s; };
    if (std::any_of(t.predicted.begin(), t.predicted.end(), here) ||
        std::any_of(t.executed.begin(), t.executed.end(), here)) {
      used.push_back(s);
    }
  }
  return used;
}

std::string drawing(const Timelines& t, const std::vector<Bar>& bars, const Axis& axis,
                    const std::string& label) {
  const std::vector<size_t> used = used_streams(t);
  const double lane = kLabel + kLane + kGap, height = lane * static_cast<double>(used.size()) + 16;
  std::string svg =
      fmt::format("<svg class=\"lanes\" viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">",
                  kTimelineWidth, height, escaped(label));
  std::vector<double> top(t.streams.size(), -1);
  for (size_t i = 0; i < used.size(); ++i) {
    const double y = lane * static_cast<double>(i);
    top[used[i]] = y + kLabel;
    svg += fmt::format(
        "<text x=\"0\" y=\"{:.0f}\">{}</text><rect class=\"lane\" x=\"0\" y=\"{:.0f}\" "
        "width=\"{}\" height=\"{}\"/>",
        y + kLabel - 3, escaped(t.streams[used[i]]), y + kLabel, kTimelineWidth, kLane);
  }
  std::array<std::string, kGroups.size()> paths;
  for (const Bar& bar : bars) {
    const double x = kTimelineWidth * axis.at(bar.begin);
    const double width = std::max(0.3, kTimelineWidth * axis.at(bar.end) - x);
    paths[group_of(bar.name)] +=
        fmt::format("M{:.1f} {:.0f}h{:.1f}v{}h-{:.1f}z", x, top[bar.stream], width, kLane, width);
  }
  for (size_t g = 0; g < paths.size(); ++g) {
    if (!paths[g].empty()) svg += fmt::format("<path class=\"t{}\" d=\"{}\"/>", g, paths[g]);
  }
  const double end = kTimelineWidth * axis.at(last_end(bars));
  svg += fmt::format("<path class=\"mark\" d=\"M{:.1f} 0V{:.0f}\"/>", end, height - 14);
  for (const Tick& tick : axis.ticks()) {
    const char* anchor = tick.at < 0.03 ? "start" : tick.at > 0.97 ? "end" : "middle";
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>",
                       kTimelineWidth * tick.at, height - 2, anchor, escaped(tick.label));
  }
  return svg + "</svg>";
}

std::string legend() {
  std::string items;
  for (size_t g = 0; g < kGroups.size(); ++g) {
    items += fmt::format(
        "<li><svg viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"t{}\" "
        "d=\"M0 0h28v10h-28z\"/></svg>{}</li>",
        g, kGroups[g]);
  }
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string seconds_cell(const std::optional<double>& seconds) {
  return "<td>" + (seconds ? duration_text(*seconds) : "\u2013") + "</td>";
}

/// A whole number of a file, which may be anything.
std::string whole_text(double number) {
  return count_text(static_cast<int64_t>(std::clamp(number, 0.0, 1e15)));
}

std::string times_table(const Json& plan) {
  const Json* list = plan.find("task_times");
  if (list == nullptr || !list->is_array()) return "";
  std::string rows;
  size_t count = 0;
  for (const Json& kind : list->as_array()) {
    if (count++ == kMostKinds) break;
    const auto predicted = number_in(kind, "predicted_s"), executed = number_in(kind, "executed_s");
    std::string ratio = "\u2013";
    if (predicted && executed && *predicted > 0) {
      ratio = percent_text(100 * *executed / *predicted);
    }
    rows += "<tr><th scope=\"row\">" + escaped(text_in(kind, "name")) + "</th><td>" +
            whole_text(number_in(kind, "tasks").value_or(0)) + "</td>" + seconds_cell(predicted) +
            seconds_cell(executed) + "<td>" + ratio + "</td></tr>";
  }
  if (rows.empty()) return "";
  return "<table class=\"sides\"><thead><tr><th scope=\"col\">tasks of a kind</th>"
         "<th scope=\"col\">number</th><th scope=\"col\">predicted</th>"
         "<th scope=\"col\">executed</th><th scope=\"col\">executed / predicted</th></tr></thead>"
         "<tbody>" +
         rows + "</tbody></table>";
}

}  // namespace

std::string timeline_section(const RunHistory& run) {
  if (!run.plan.is_object()) return "";
  const Timelines t = timelines_of(run.plan);
  const std::string table = times_table(run.plan);
  const double last = std::max(last_end(t.predicted), last_end(t.executed));
  if (!(last > 0) && table.empty()) return "";
  std::string html =
      "<section class=\"card wide\" id=\"timelines\"><h2>A step, predicted and executed</h2>"
      "<p>What each stream did in step " +
      whole_text(t.step) +
      ", below what the plan predicted for a mean step, on one scale of seconds. Neighbouring "
      "tasks are joined where a step has many.</p>";
  if (last > 0) {
    const Axis axis = Axis::linear(0, last, true);
    html += legend();
    const auto add = [&](const char* name, const std::vector<Bar>& bars) {
      if (bars.empty()) return;
      const std::string title = std::string(name) + ", " + duration_text(last_end(bars));
      html += "<h3>" + title + "</h3>" + drawing(t, bars, axis, title);
    };
    add("Predicted", t.predicted);
    add("Executed", t.executed);
  }
  return html + table + "</section>\n";
}

}  // namespace hearth
