#include "report/sections.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/counted.h"
#include "report/html.h"

namespace hearth {
namespace {

std::string th(const char* text) { return std::string("<th scope=\"col\">") + text + "</th>"; }

/// A bar of the planned bytes with the measured ones in it.
std::string bar_html(double planned, double measured, double most) {
  const auto share = [&](double bytes) {
    return most > 0 ? std::min(100.0, 100 * bytes / most) : 0;
  };
  return fmt::format(
      "<div class=\"bar\" aria-hidden=\"true\"><i style=\"width:{:.2f}%\"></i><b "
      "style=\"width:{:.2f}%\"></b></div>",
      share(planned), share(measured));
}

std::string place_html(const PlannedPlace& place) {
  double most = 0;
  for (const PlannedMemory& line : place.lines) {
    most = std::max({most, line.bytes, line.measured.value_or(0)});
  }
  std::vector<PlannedMemory> lines = place.lines;
  std::stable_sort(lines.begin(), lines.end(), [](const PlannedMemory& a, const PlannedMemory& b) {
    return std::max(a.bytes, a.measured.value_or(0)) > std::max(b.bytes, b.measured.value_or(0));
  });
  std::string rows;
  for (const PlannedMemory& line : lines) {
    rows += "<tr><th scope=\"row\">" + escaped(line.name) + "<small>" + escaped(line.basis) +
            "</small>" + bar_html(line.bytes, line.measured.value_or(0), most) + "</th><td>" +
            bytes_text(line.bytes) + "</td><td>" +
            (line.measured ? bytes_text(*line.measured) : "\u2013") + "</td></tr>";
  }
  const std::string budget =
      place.budget_bytes > 0 ? "budget " + bytes_text(place.budget_bytes) : "no limit";
  rows += "<tr class=\"sum\"><th scope=\"row\">peak<small>" + budget + "</small></th><td>" +
          bytes_text(place.peak_bytes) + "</td><td>" +
          (place.measured_peak_bytes ? bytes_text(*place.measured_peak_bytes) : "\u2013") +
          "</td></tr>";
  return "<table class=\"memory\"><caption>" + escaped(place.place) + "</caption><thead><tr>" +
         th("class and basis") + th("planned") + th("measured") + "</tr></thead><tbody>" + rows +
         "</tbody></table>";
}

std::string option_rows(const RunHistory& run, const OptionDefaults& defaults, bool is_default,
                        size_t& count) {
  std::string rows;
  for (const auto& [name, value] : run.config) {
    const auto known = defaults.find(name);
    if ((known != defaults.end() && known->second == value) != is_default) continue;
    ++count;
    rows += "<tr><th scope=\"row\">" + escaped(name) + "</th><td><code>" + escaped(value) +
            "</code></td></tr>";
  }
  return rows;
}

}  // namespace

std::string evaluations_section(const RunHistory& run) {
  const auto& evaluations = run.journal.evaluations;
  if (evaluations.empty()) return "";
  auto best = evaluations.begin();
  for (auto at = evaluations.begin(); at != evaluations.end(); ++at) {
    if (!(best->second.loss <= at->second.loss)) best = at;
  }
  std::string rows;
  const auto add = [&](const char* name, const auto& entry) {
    rows += std::string("<tr><th scope=\"row\">") + name + "</th><td>" + count_text(entry.first) +
            "</td><td>" + number_text(entry.second.loss) + "</td><td>" +
            number_text(std::exp(entry.second.loss)) + "</td></tr>";
  };
  add("first", *evaluations.begin());
  if (evaluations.size() > 2) add("lowest", *best);
  if (evaluations.size() > 1) add("last", *evaluations.rbegin());
  return "<section class=\"card\"><h2>Evaluation</h2><p>" +
         plural_text(static_cast<int64_t>(evaluations.size()), "evaluation") + " on " +
         plural_text(evaluations.rbegin()->second.trained_tokens, "trained token") +
         ".</p><table class=\"sides\"><thead><tr><td></td>" + th("step") + th("loss") +
         th("perplexity") + "</tr></thead><tbody>" + rows + "</tbody></table></section>\n";
}

/// "Bounded by cpu in 12 steps, by host->cuda:0 in 8 steps." The most frequent comes first.
static std::string limits_text(const MetricsHistory& m) {
  std::vector<std::pair<std::string, int64_t>> limits(m.limits.begin(), m.limits.end());
  std::ranges::stable_sort(limits, std::greater(), &std::pair<std::string, int64_t>::second);
  std::string text;
  for (const auto& [name, steps] : limits) {
    text += (text.empty() ? "Bounded by <code>" : ", by <code>") + escaped(name) + "</code> in " +
            plural_text(steps, "step");
  }
  return text.empty() ? "" : "<p>" + text + ".</p>";
}

/// "Workers, summed: products 12 s, sweeps 3 s, waiting 1 s."
static std::string workers_text(const MetricsHistory& m) {
  std::string text;
  for (const auto& [kind, seconds] : m.cpu_s) {
    text += (text.empty() ? "" : ", ") + escaped(kind) + " " + duration_text(seconds);
  }
  return text.empty() ? "" : "<p>Workers, summed: " + text + ".</p>";
}

std::string resources_section(const RunHistory& run) {
  const MetricsHistory& m = run.metrics;
  if (m.busy_s.empty() || m.time_s <= 0) return "";
  std::string rows;
  for (const auto& [name, seconds] : m.busy_s) {
    const double percent = 100 * seconds / m.time_s;
    rows += "<tr><th scope=\"row\">" + escaped(name) + bar_html(0, percent, 100) + "</th><td>" +
            duration_text(seconds) + "</td><td>" + percent_text(percent) + "</td><td>" +
            (m.stall_s.contains(name) ? duration_text(m.stall_s.at(name)) : "") + "</td></tr>";
  }
  const auto predicted = run.planned("time_s"), measured = run.planned("measured_time_s");
  std::string plan;
  if (predicted) {
    plan =
        "<p>The plan predicted " + duration_text(*predicted) + " per step" +
        (measured ? ", measured were " + duration_text(*measured) + " on average" : std::string()) +
        (run.planned("bound_s") ? "; the bound is " + duration_text(*run.planned("bound_s"))
                                : std::string()) +
        ".</p>";
  }
  return "<section class=\"card\"><h2>Time by resource</h2><p>Steps took " +
         duration_text(m.time_s) +
         " in all. Resources work at the same time, so their shares need not add up to 100 %.</p>" +
         plan + limits_text(m) + workers_text(m) + "<table class=\"memory\"><thead><tr>" +
         th("resource") + th("busy") + th("of the steps") + th("waited") + "</tr></thead><tbody>" +
         rows + "</tbody></table></section>\n";
}

std::string memory_section(const RunHistory& run) {
  std::string places;
  for (const PlannedPlace& place : run.memory) places += place_html(place);
  if (places.empty()) return "";
  return "<section class=\"card wide\"><h2>Memory by class</h2><p>What was planned before step 1 "
         "(light bar), with its basis, and what was measured (dark bar; a dash: not measured, or "
         "the "
         "run has not ended).</p>" +
         places + "</section>\n";
}

std::string samples_section(const RunHistory& run) {
  if (run.journal.samples.empty()) return "";
  std::string html = "<section class=\"card wide\"><h2>Samples</h2><div class=\"samples\">";
  // Those of a prompt together, in the order of the journal.
  const std::vector<GeneratedSample>& all = run.journal.samples;
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < all.size(); ++i) {
    size_t first = 0;
    while (all[first].prompt != all[i].prompt) ++first;
    order.emplace_back(first, i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [first, i] : order) {
    const GeneratedSample& sample = all[i];
    std::string when = sample.when;
    if (sample.step) when += (when.empty() ? "" : ", ") + ("step " + count_text(*sample.step));
    html += "<article><h3>" + escaped(when) + "</h3>" +
            (sample.prompt.empty() ? ""
                                   : "<pre class=\"prompt\">" + escaped(sample.prompt) + "</pre>") +
            "<pre>" + escaped(sample.text) + "</pre></article>";
  }
  return html + "</div></section>\n";
}

std::string events_section(const RunHistory& run) {
  const JournalHistory& journal = run.journal;
  if (journal.events.empty()) return "";
  std::string rows;
  for (size_t i = 0; i < journal.events.size(); ++i) {
    const JournalEvent& event = journal.events[i];
    if (journal.events_left_out > 0 && i == journal.events_of_beginning) {
      rows += "<tr><td colspan=\"4\">" + counted(count_text(journal.events_left_out), "event") +
              " left out here; journal.jsonl has them</td></tr>";
    }
    std::string name = event.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    rows += "<tr" + std::string(event.is_alarm ? " class=\"alarm\"" : "") + "><th scope=\"row\">" +
            (event.is_alarm ? "<span class=\"sign\" aria-hidden=\"true\">!</span> " : "") +
            escaped(name) + "</th><td>" + (event.step ? count_text(*event.step) : "") +
            "</td><td class=\"time\">" + escaped(date_text(event.time)) + "</td><td>" +
            escaped(event.details) + "</td></tr>";
  }
  return "<section class=\"card wide\"><h2>Events</h2><p>" +
         plural_text(journal.resumes, "resume") + ", " + plural_text(journal.warnings, "warning") +
         ", " + plural_text(run.metrics.not_finite, "skipped step") + ", " +
         plural_text(journal.failed_saves, "failed save") +
         ".</p><table class=\"events\"><thead><tr>" + th("event") + th("step") + th("time") +
         th("what") + "</tr></thead><tbody>" + rows + "</tbody></table></section>\n";
}

std::string configuration_section(const RunHistory& run, const OptionDefaults& defaults) {
  if (run.config.empty()) return "";
  size_t own = 0, others = 0;
  const std::string set = option_rows(run, defaults, false, own);
  const std::string rest = option_rows(run, defaults, true, others);
  return "<section class=\"card wide\"><h2>Configuration</h2><p>" +
         plural_text(static_cast<int64_t>(own), "option") +
         " not at the default.</p><table class=\"options\"><tbody>" + set + "</tbody></table>" +
         (others == 0 ? ""
                      : "<details><summary>" + plural_text(static_cast<int64_t>(others), "option") +
                            " at the default</summary><table class=\"options\"><tbody>" + rest +
                            "</tbody></table></details>") +
         "</section>\n";
}

}  // namespace hearth
