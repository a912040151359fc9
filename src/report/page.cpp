#include "report/page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/version.h"
#include "report/header.h"
#include "report/heat_map.h"
#include "report/html.h"
#include "report/page_script.h"
#include "report/page_style.h"
#include "report/timeline_section.h"
#include "report/verdict_section.h"

namespace hearth {
namespace {

/// Resources have colours in the order of their names; further ones are drawn like the last.
std::vector<ChartLine> busy_lines(const MetricsHistory& m) {
  std::vector<ChartLine> lines;
  for (const auto& [name, series] : m.busy) {
    const int colour = static_cast<int>(std::min<size_t>(lines.size(), 3));
    lines.push_back({name, &series, colour, colour % 2 == 1});
  }
  return lines;
}

std::vector<ChartLine> prediction_lines(const MetricsHistory& m) {
  static const std::map<std::string, std::string> kNames = {
      {"token_hit", "choices of tokens"},
      {"least_quarter", "least popular quarter of the experts"},
      {"byte_hit", "bytes that devices needed"}};
  std::vector<ChartLine> lines;
  for (const auto& [name, series] : m.prediction) {
    const auto found = kNames.find(name);
    if (found == kNames.end() || series.empty()) continue;
    const int colour = static_cast<int>(lines.size());
    lines.push_back({found->second, &series, colour, colour % 2 == 1});
  }
  return lines;
}

std::vector<ChartLine> utilisation_lines(const MetricsHistory& m) {
  std::vector<ChartLine> lines;
  for (const auto& [name, text] : {std::pair("attention", "ranks with attention"),
                                   std::pair("experts", "ranks with experts")}) {
    const auto found = m.utilisation.find(name);
    if (found == m.utilisation.end() || found->second.empty()) continue;
    const int colour = static_cast<int>(lines.size());
    lines.push_back({text, &found->second, colour, colour % 2 == 1});
  }
  return lines;
}

std::vector<ChartLevel> level_of_option(const RunHistory& run, const char* name,
                                        const std::string& label) {
  const std::string text = run.option(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value > 0)) return {};
  return {{label, value}};
}

/// What the loss means as a perplexity.
std::string loss_text(const MetricsHistory& m) {
  std::string text = "Cross-entropy of the trained tokens.";
  if (!m.first_loss || !m.last_loss) return text;
  return text + " As a perplexity, its exponential: " + number_text(std::exp(*m.first_loss)) +
         " at step " + count_text(m.first_loss_step) + ", " + number_text(std::exp(*m.last_loss)) +
         " at step " + count_text(m.last_loss_step) + ".";
}

/// In the order of the page: what everybody asks first.
std::vector<LineChart> charts_of(const RunHistory& run, const Series& evaluation) {
  const MetricsHistory& m = run.metrics;
  std::vector<LineChart> charts;
  charts.push_back(
      {.id = "loss",
       .title = "Loss",
       .unit = "nats per token",
       .about = loss_text(m),
       .lines = {{"training", &m.loss, 0},
                 {"evaluation", &evaluation, 1, true, run.journal.evaluations.size() <= 40}},
       .marks = {{"step not finite, skipped", true, m.not_finite_steps},
                 {"resumed", false, run.journal.resume_steps}},
       .wide = true,
       .epochs_per_step = m.last_step > 0 ? m.last_epoch / static_cast<double>(m.last_step) : 0});
  std::vector<ChartLevel> predicted;
  if (run.planned("tokens_per_s")) predicted.push_back({"planned", *run.planned("tokens_per_s")});
  charts.push_back({.id = "throughput",
                    .title = "Throughput",
                    .unit = "tokens per second",
                    .about = "All tokens of a step over its time.",
                    .lines = {{"tokens per second", &m.tokens_per_s, 0}},
                    .levels = predicted,
                    .from_zero = true});
  charts.push_back({.id = "lr",
                    .title = "Learning rate",
                    .unit = "rate",
                    .about = "What the step took.",
                    .lines = {{"learning rate", &m.lr, 0}},
                    .from_zero = true});
  charts.push_back({.id = "grad-norm",
                    .title = "Gradient norm",
                    .unit = "norm",
                    .about = "Over all trained tensors, before clipping.",
                    .lines = {{"gradient norm", &m.grad_norm, 0}},
                    .levels = level_of_option(run, "max-grad-norm", "clipped above"),
                    .marks = {{"step not finite, skipped", true, m.not_finite_steps}},
                    .from_zero = true});
  if (m.aux_loss.all.max > 0) {
    charts.push_back({.id = "aux-loss",
                      .title = "Auxiliary loss",
                      .unit = "plain value",
                      .about = "Of load balancing, without its coefficient.",
                      .lines = {{"auxiliary loss", &m.aux_loss, 0}}});
  }
  if (!m.z_loss.empty()) {
    charts.push_back({.id = "z-loss",
                      .title = "Router z-loss",
                      .unit = "plain value",
                      .about = "Without its coefficient.",
                      .lines = {{"z-loss", &m.z_loss, 0}}});
  }
  return charts;
}

/// What tells how well the program used the machine.
std::vector<LineChart> developers_charts(const MetricsHistory& m) {
  std::vector<LineChart> charts;
  charts.push_back({.id = "bound",
                    .title = "Percentage of the bound",
                    .unit = "%",
                    .about = "The least time of the step by the measured rates of this machine, "
                             "over the time it took.",
                    .lines = {{"percent of the bound", &m.bound_pct, 0}},
                    .from_zero = true});
  charts.push_back({.id = "busy",
                    .title = "Busy resources",
                    .unit = "% of the step",
                    .about = "How long each resource worked in a step.",
                    .lines = busy_lines(m),
                    .from_zero = true});
  if (!m.hit_pct.empty()) {
    charts.push_back({.id = "hits",
                      .title = "Experts that were there in time",
                      .unit = "% of routed tokens",
                      .about =
                          "Of the tokens whose expert was loaded to a device: those whose expert "
                          "was there or under way before its tokens were counted.",
                      .lines = {{"hits", &m.hit_pct, 0}},
                      .from_zero = true});
    charts.push_back({.id = "late-loads",
                      .title = "Late loads",
                      .unit = "s",
                      .about =
                          "How long the work of a step waited for loads that had been asked for "
                          "ahead.",
                      .lines = {{"waiting", &m.late_load_s, 0}},
                      .from_zero = true});
  }
  if (auto lines = prediction_lines(m); !lines.empty()) {
    charts.push_back({.id = "prediction",
                      .title = "What was foretold",
                      .unit = "% that came true",
                      .about = "How much of the routing was known before the router of a layer "
                               "had run.",
                      .lines = std::move(lines),
                      .from_zero = true});
  }
  if (auto lines = utilisation_lines(m); !lines.empty()) {
    charts.push_back({.id = "utilisation",
                      .title = "Utilisation by role",
                      .unit = "% of the step",
                      .about = "How much of a step the ranks of a role compute, on average. The "
                               "rest is waiting for other ranks.",
                      .lines = std::move(lines),
                      .from_zero = true});
  }
  return charts;
}

}  // namespace

std::string document(const std::string& title, const std::string& body,
                     const std::vector<LineChart>& charts, const std::string& heat_maps) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
         escaped(title) + "</title>\n<style>" + page_style() +
         "</style>\n</head>\n<body>\n<main>\n" + body + "<footer>Written by hearth " +
         escaped(build_info().version) +
         ". This file needs no network; it can be sent and kept as it is.</footer>\n</main>\n"
         "<script type=\"application/json\" id=\"values\">{\"charts\":" +
         script_safe(chart_data(charts)) + ",\n\"heat\":" + script_safe(heat_maps) +
         "}</script>\n<script>" + page_script() + "</script>\n</body>\n</html>\n";
}

std::string report_page(const RunHistory& run, const OptionDefaults& defaults) {
  Series evaluation(run.metrics.axis);
  for (const auto& [step, result] : run.journal.evaluations) evaluation.add(step, result.loss);
  std::vector<LineChart> charts = charts_of(run, evaluation);
  const std::vector<LineChart> developers = developers_charts(run.metrics);
  const auto curve = [&](const std::string& id) {
    const auto chart = std::find_if(charts.begin(), charts.end(),
                                    [&](const LineChart& each) { return each.id == id; });
    return chart_html(*chart);
  };
  std::string others, machine;
  for (const LineChart& chart : charts) {
    if (chart.id != "loss" && chart.id != "throughput") others += chart_html(chart);
  }
  for (const LineChart& chart : developers) machine += chart_html(chart);
  const auto& load = run.metrics.expert_load;
  const auto& residency = run.metrics.residency;
  machine += heat_map_html("residency", "Weights on devices", kResidencyScale, residency) +
             timeline_section(run) + memory_section(run) + resources_section(run);
  if (!machine.empty()) {
    machine =
        "<details class=\"developers\"><summary>For developers: the bound, resources, timelines, "
        "memory</summary><div class=\"grid\">\n" +
        machine + "</div></details>\n";
  }
  const std::string body = header_section(run) + "<div class=\"grid\">\n" + verdict_section(run) +
                           curve("loss") + evaluations_section(run) + curve("throughput") +
                           heat_map_html("expert-load", "Expert load", kExpertLoadScale, load) +
                           others + samples_section(run) + events_section(run) +
                           facts_section(run) + configuration_section(run, defaults) + machine +
                           "</div>\n";
  charts.insert(charts.end(), developers.begin(), developers.end());
  return document(run.name + " \u2013 hearth report", body, charts,
                  "{\"expert-load\":" + heat_map_data(load) +
                      ",\"residency\":" + heat_map_data(residency) + "}");
}

}  // namespace hearth
