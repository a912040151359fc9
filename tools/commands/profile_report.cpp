#include "commands/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "report/cost_page.h"
#include "report/html.h"

namespace hearth {
namespace {

const char* name_of_type(Compute dtype) { return dtype == Compute::f32 ? "f32" : "bf16"; }

std::string cores_text(const CostEntry& entry) {
  return entry.cores ? std::to_string(*entry.cores) : "-";
}

const char* units_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::experts: return "tokens of an expert";
    case TaskKind::norm:
    case TaskKind::update: return "parameters";
    default: return "tokens";
  }
}

CostCurve curve_of(const std::string& place, const CostEntry& entry) {
  CostCurve curve;
  curve.name = place;
  if (entry.cores)
    curve.name += *entry.cores == 1 ? ", 1 core" : fmt::format(", {} cores", *entry.cores);
  for (size_t i = 0; i < entry.units.size(); ++i) {
    if (entry.seconds[i] <= 0) continue;
    curve.units.push_back(static_cast<double>(entry.units[i]));
    curve.seconds.push_back(entry.seconds[i]);
  }
  return curve;
}

/// The same task at different places and with different cores is one chart.
std::vector<CostChart> charts_of(std::span<const ProfiledTable> tables) {
  using Key = std::tuple<TaskKind, Phase, Compute, int64_t, int64_t>;
  std::map<Key, CostChart> charts;
  for (const ProfiledTable& table : tables) {
    std::vector<CostEntry> entries = table.measured.table.entries();
    std::stable_sort(entries.begin(), entries.end(), [](const CostEntry& a, const CostEntry& b) {
      return a.cores.value_or(0) > b.cores.value_or(0);
    });
    for (const CostEntry& entry : entries) {
      const CostShape shape = entry.shape.value_or(CostShape{});
      CostChart& chart =
          charts[Key{entry.kind, entry.phase, entry.dtype, shape.hidden, shape.width}];
      const bool one_phase = entry.kind == TaskKind::head || entry.kind == TaskKind::norm ||
                             entry.kind == TaskKind::update;
      chart.title = std::string(name_of(entry.kind));
      if (!one_phase) chart.title.append(" ").append(name_of(entry.phase));
      chart.title +=
          fmt::format(", {}, {} x {}", name_of_type(entry.dtype), shape.hidden, shape.width);
      chart.unit = units_of(entry.kind);
      chart.curves.push_back(curve_of(table.measured.place, entry));
    }
  }
  std::vector<CostChart> list;
  for (auto& [key, chart] : charts) {
    chart.id = fmt::format("chart-{}", list.size());
    list.push_back(std::move(chart));
  }
  return list;
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string rate_text(double rate) { return fmt::format("{:.2f} GB/s", rate / 1e9); }

std::string break_even_text(std::span<const ProfiledTable> tables) {
  std::string text;
  for (const CostChart& chart : charts_of(tables)) {
    if (!chart.title.starts_with("experts")) continue;
    for (size_t i = 1; i < chart.curves.size(); ++i) {
      const double units = break_even(chart.curves[0], chart.curves[i]);
      const std::string from = units == 0 ? "at every size"
                               : std::isinf(units)
                                   ? "at no size measured"
                                   : fmt::format("from {:.0f} tokens on", std::ceil(units));
      text += fmt::format("{}: {} is faster than {} {}\n", chart.title, chart.curves[i].name,
                          chart.curves[0].name, from);
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string noise_text(const MeasuredTable& table) {
  const std::string counts = fmt::format("{} points, {} runs", table.points, table.samples);
  if (!table.spread) return counts + ", too few to know the spread";
  return fmt::format("{}, spread {:.1f} %{}", counts, 100 * *table.spread,
                     table.noisy() ? ": noisy; close other programs and measure again" : "");
}

}  // namespace

Json profile_json(std::span<const ProfiledTable> tables, double seconds) {
  Json json, spread;
  JsonArray files;
  json["tables"] = JsonObject{};
  bool noisy = false;
  Json left_out = JsonObject{};
  for (const ProfiledTable& table : tables) {
    left_out[table.measured.place] =
        JsonArray(table.measured.left_out.begin(), table.measured.left_out.end());
    json["tables"][table.measured.place] = table.document;
    for (const std::string& file : table.files) files.emplace_back(file);
    const auto& known = table.measured.spread;
    spread[table.measured.place] = known ? Json(*known) : Json();
    noisy = noisy || table.measured.noisy();
  }
  json["files"] = std::move(files);
  json["spread"] = std::move(spread);
  json["noisy"] = noisy;
  json["left_out"] = std::move(left_out);
  json["seconds"] = seconds;
  return json;
}

std::string profile_text(std::span<const ProfiledTable> tables, double seconds) {
  std::string text = fmt::format("measured for {:.1f} s\n", seconds);
  for (const ProfiledTable& table : tables) {
    text += fmt::format("\n{}: {}\n", table.measured.place, noise_text(table.measured));
    for (const std::string& what : table.measured.left_out) {
      text += "left out for lack of time: " + what + "\n";
    }
    text += fmt::format("{:<10} {:<9} {:<5} {:>5} {:>12} {:>12} {:>12} {:>14}\n", "kind", "phase",
                        "type", "cores", "least units", "takes", "most units", "takes");
    for (const CostEntry& e : table.measured.table.entries()) {
      text += fmt::format("{:<10} {:<9} {:<5} {:>5} {:>12} {:>12} {:>12} {:>14}\n", name_of(e.kind),
                          name_of(e.phase), name_of_type(e.dtype), cores_text(e), e.units.front(),
                          seconds_text(e.seconds.front()), e.units.back(),
                          seconds_text(e.seconds.back()));
    }
    for (const CostLink& link : table.measured.table.links()) {
      text += fmt::format("{:<22} {:>12} alone {:>12} together {:>10} latency\n", link.link,
                          rate_text(link.bytes_per_s), rate_text(link.together),
                          seconds_text(link.latency_s));
    }
  }
  text += break_even_text(tables);
  text += "\n";
  for (const ProfiledTable& table : tables) {
    for (const std::string& file : table.files) text += "wrote " + file + "\n";
  }
  return text;
}

std::string profile_page(std::span<const ProfiledTable> tables, const std::string& machine) {
  std::vector<CostFact> facts{{"machine", machine}};
  for (const ProfiledTable& table : tables) {
    facts.push_back({table.measured.place, noise_text(table.measured)});
    for (const CostLink& link : table.measured.table.links()) {
      facts.push_back(
          {link.link, fmt::format("{} alone, {} together, {} latency", rate_text(link.bytes_per_s),
                                  rate_text(link.together), seconds_text(link.latency_s))});
    }
  }
  return cost_page("Rates of " + (machine.empty() ? "this machine" : machine), facts,
                   charts_of(tables));
}

}  // namespace hearth
