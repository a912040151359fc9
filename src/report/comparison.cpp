#include "report/comparison.h"

#include <algorithm>
#include <cmath>

#include "report/header.h"
#include "report/heat_map.h"
#include "report/html.h"
#include "report/page.h"

namespace hearth {
namespace {

struct Sides {
  const RunHistory &a, &b;
  std::string first, second;  // what they are called in legends
};

/// The names of the directories, or the directories where those are the same.
Sides sides_of(const RunHistory& a, const RunHistory& b) {
  if (a.name != b.name) return {a, b, a.name, b.name};
  return {a, b, a.directory, b.directory};
}

std::vector<LineChart> charts_of(const Sides& sides, const Series& eval_a, const Series& eval_b) {
  const auto both = [&](Series MetricsHistory::*member) {
    return std::vector<ChartLine>{{sides.first, &(sides.a.metrics.*member), 0},
                                  {sides.second, &(sides.b.metrics.*member), 1, true}};
  };
  std::vector<LineChart> charts;
  charts.push_back({.id = "loss",
                    .title = "Training loss",
                    .unit = "nats per token",
                    .about = "Cross-entropy of the trained tokens.",
                    .lines = both(&MetricsHistory::loss),
                    .wide = true});
  charts.push_back(
      {.id = "eval-loss",
       .title = "Evaluation loss",
       .unit = "nats per token",
       .about = "Cross-entropy of the evaluation data.",
       .lines = {{sides.first, &eval_a, 0, false, true}, {sides.second, &eval_b, 1, true, true}},
       .wide = true});
  charts.push_back({.id = "lr",
                    .title = "Learning rate",
                    .unit = "rate",
                    .about = "What the step took.",
                    .lines = both(&MetricsHistory::lr),
                    .from_zero = true});
  charts.push_back({.id = "grad-norm",
                    .title = "Gradient norm",
                    .unit = "norm",
                    .about = "Over all trained tensors, before clipping.",
                    .lines = both(&MetricsHistory::grad_norm),
                    .from_zero = true});
  charts.push_back({.id = "throughput",
                    .title = "Throughput",
                    .unit = "tokens per second",
                    .about = "All tokens of a step over its time.",
                    .lines = both(&MetricsHistory::tokens_per_s),
                    .from_zero = true});
  charts.push_back({.id = "bound",
                    .title = "Percentage of the bound",
                    .unit = "%",
                    .about = "The least time of the step over the time it took.",
                    .lines = both(&MetricsHistory::bound_pct),
                    .from_zero = true});
  return charts;
}

std::string difference(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0) return "\u2013";
  const double percent = 100 * (b - a) / std::abs(a);
  return (percent > 0 ? "+" : percent < 0 ? "\u2212" : "") + percent_text(std::abs(percent));
}

std::string figures_table(const Sides& sides) {
  std::string rows;
  const auto add = [&](const char* name, auto value, const auto& text) {
    const double a = value(sides.a), b = value(sides.b);
    rows += std::string("<tr><th scope=\"row\">") + name + "</th><td>" + text(a) + "</td><td>" +
            text(b) + "</td><td>" + difference(a, b) + "</td></tr>";
  };
  const auto none = std::numeric_limits<double>::quiet_NaN();
  add(
      "last training loss", [&](const RunHistory& r) { return r.metrics.last_loss.value_or(none); },
      number_text);
  add(
      "last evaluation loss",
      [&](const RunHistory& r) {
        const auto& e = r.journal.evaluations;
        return e.empty() ? none : e.rbegin()->second.loss;
      },
      number_text);
  add(
      "steps", [](const RunHistory& r) { return static_cast<double>(r.metrics.last_step); },
      number_text);
  add(
      "tokens", [](const RunHistory& r) { return static_cast<double>(r.metrics.tokens); },
      number_text);
  add(
      "time in steps", [](const RunHistory& r) { return r.metrics.time_s; }, duration_text);
  add(
      "tokens per second",
      [&](const RunHistory& r) {
        return r.metrics.time_s > 0 ? static_cast<double>(r.metrics.tokens) / r.metrics.time_s
                                    : none;
      },
      number_text);
  add(
      "percent of the bound",
      [&](const RunHistory& r) {
        return r.metrics.bound_pct.empty() ? none : r.metrics.bound_pct.all.mean();
      },
      percent_text);
  add(
      "peak memory", [](const RunHistory& r) { return r.peak_bytes(); }, bytes_text);
  add(
      "skipped steps",
      [](const RunHistory& r) { return static_cast<double>(r.metrics.not_finite); }, number_text);
  add(
      "resumes", [](const RunHistory& r) { return static_cast<double>(r.journal.resumes); },
      number_text);
  return "<section class=\"card wide\"><h2>Figures</h2><table "
         "class=\"sides\"><thead><tr><td></td><th "
         "scope=\"col\">" +
         escaped(sides.first) + "</th><th scope=\"col\">" + escaped(sides.second) +
         "</th><th scope=\"col\">second against first</th></tr></thead><tbody>" + rows +
         "</tbody></table></section>\n";
}

std::string options_table(const Sides& sides, const OptionDefaults& defaults) {
  OptionDefaults a(sides.a.config.begin(), sides.a.config.end());
  OptionDefaults b(sides.b.config.begin(), sides.b.config.end());
  OptionDefaults names = a;
  names.insert(b.begin(), b.end());
  std::string rows;
  int64_t same = 0;
  const auto value_in = [&](const OptionDefaults& config, const std::string& name) {
    const auto at = config.find(name);
    if (at != config.end()) return at->second;
    const auto fallback = defaults.find(name);
    return fallback == defaults.end() ? std::string() : fallback->second;
  };
  for (const auto& [name, ignored] : names) {
    const std::string left = value_in(a, name), right = value_in(b, name);
    if (left == right) {
      ++same;
      continue;
    }
    rows += "<tr><th scope=\"row\">" + escaped(name) + "</th><td><code>" + escaped(left) +
            "</code></td><td><code>" + escaped(right) + "</code></td></tr>";
  }
  return "<section class=\"card wide\"><h2>Options that differ</h2><table class=\"options\"><thead>"
         "<tr><td></td><th scope=\"col\">" +
         escaped(sides.first) + "</th><th scope=\"col\">" + escaped(sides.second) +
         "</th></tr></thead><tbody>" + rows + "</tbody></table><p>" + count_text(same) +
         " others are the same.</p></section>\n";
}

Series evaluations_of(const RunHistory& run) {
  Series series(run.metrics.axis);
  for (const auto& [step, result] : run.journal.evaluations) series.add(step, result.loss);
  return series;
}

}  // namespace

std::string comparison_page(const RunHistory& a, const RunHistory& b,
                            const OptionDefaults& defaults) {
  const Sides sides = sides_of(a, b);
  const Series eval_a = evaluations_of(a), eval_b = evaluations_of(b);
  const std::vector<LineChart> charts = charts_of(sides, eval_a, eval_b);
  std::string body = "<header><p class=\"mark\">hearth report</p><h1>" + escaped(sides.first) +
                     " <span class=\"versus\">and</span> " + escaped(sides.second) +
                     "</h1><p class=\"pair\">" + escaped(sides.first) + ": " + state_badge(a) +
                     "</p><p class=\"pair\">" + escaped(sides.second) + ": " + state_badge(b) +
                     "</p></header>\n<div class=\"grid\">\n" + figures_table(sides);
  for (const LineChart& chart : charts) body += chart_html(chart);
  std::string heat;
  const auto add = [&](const std::string& id, const std::string& title, const HeatScale& scale,
                       const std::vector<Series>& of_a, const std::vector<Series>& of_b) {
    body += heat_map_html(id + "-1", title + ": " + sides.first, scale, of_a) +
            heat_map_html(id + "-2", title + ": " + sides.second, scale, of_b);
    heat += (heat.empty() ? "\"" : ",\"") + id + "-1\":" + heat_map_data(of_a) + ",\"" + id +
            "-2\":" + heat_map_data(of_b);
  };
  add("expert-load", "Expert load", kExpertLoadScale, a.metrics.expert_load, b.metrics.expert_load);
  add("residency", "Weights on devices", kResidencyScale, a.metrics.residency, b.metrics.residency);
  body += options_table(sides, defaults) + "</div>\n";
  return document(sides.first + " and " + sides.second + " \u2013 hearth report", body, charts,
                  "{" + heat + "}");
}

}  // namespace hearth
