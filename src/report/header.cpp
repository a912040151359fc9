// Name, state and figures of a run; what it was made of; where things are.
#include "report/header.h"

#include <fmt/core.h>

#include "base/file_ops.h"
#include "report/html.h"

namespace hearth {
namespace {

std::string figure_html(const std::string& name, const std::string& value,
                        const std::string& more) {
  return "<div class=\"figure\"><dt>" + escaped(name) + "</dt><dd><strong>" + escaped(value) +
         "</strong>" + (more.empty() ? "" : "<span>" + escaped(more) + "</span>") + "</dd></div>";
}

std::string row_html(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  return "<tr><th scope=\"row\">" + escaped(name) + "</th><td>" + value + "</td></tr>";
}

std::string code(const std::string& text) {
  return text.empty() ? "" : "<code>" + escaped(text) + "</code>";
}

std::optional<int64_t> number_in(const Json& event, const char* key) {
  const Json* value = event.is_object() ? event.find(key) : nullptr;
  if (!value || !value->is_signed()) return std::nullopt;
  return value->as_int();
}

std::string named(const Json& event, const char* key) {
  const Json* value = event.is_object() ? event.find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : "";
}

std::string parameters_text(const RunHistory& run) {
  const auto all = number_in(run.journal.plan, "parameters");
  const auto trained = number_in(run.journal.plan, "trained_parameters");
  if (!all || !trained || *all <= 0) return "";
  return count_text(*all) + ", of them trained " + count_text(*trained) + " (" +
         percent_text(100.0 * static_cast<double>(*trained) / static_cast<double>(*all)) + ")";
}

}  // namespace

std::string state_badge(const RunHistory& run) {
  const JournalHistory& journal = run.journal;
  const auto badge = [](const char* kind, const std::string& text) {
    return std::string("<span class=\"badge ") + kind + "\">" + text + "</span>";
  };
  const std::string step = journal.end_step ? count_text(*journal.end_step) : "?";
  if (journal.end == RunEnd::finished) return badge("good", "finished at step " + step);
  if (journal.end == RunEnd::signal) return badge("soft", "stopped by a signal after step " + step);
  if (journal.end == RunEnd::failed) {
    return badge("bad", "ended with an error after step " + step + " (exit code " +
                            count_text(journal.end_code) + ")");
  }
  if (run.metrics.steps == 0) return badge("soft", "no step yet");
  return badge("soft", "not finished: under way or broken off, last step " +
                           count_text(run.metrics.last_step));
}

std::string header_section(const RunHistory& run) {
  const MetricsHistory& m = run.metrics;
  std::string figures;
  if (m.last_loss) {
    figures += figure_html("Training loss", number_text(*m.last_loss),
                           "from " + number_text(*m.first_loss));
  }
  const auto& evaluations = run.journal.evaluations;
  if (!evaluations.empty()) {
    const auto& [first, before] = *evaluations.begin();
    const auto& [last, after] = *evaluations.rbegin();
    figures += figure_html("Evaluation loss", number_text(after.loss),
                           evaluations.size() == 1 ? "at step " + count_text(last)
                                                   : "from " + number_text(before.loss) +
                                                         " at step " + count_text(first));
  }
  const auto planned = run.planned("steps");
  const auto steps =
      planned ? static_cast<int64_t>(*planned) : run.journal.planned_steps.value_or(0);
  std::string of = steps > 0 ? "of " + count_text(steps) : "";
  if (m.not_finite > 0) of += (of.empty() ? "" : ", ") + count_text(m.not_finite) + " skipped";
  figures += figure_html("Steps", count_text(m.last_step), of);
  if (m.steps > 0) {
    figures += figure_html("Tokens", rounded_count(m.tokens),
                           rounded_count(m.trained_tokens) + " trained");
    figures += figure_html("Time in steps", duration_text(m.time_s),
                           m.repeated > 0 ? duration_text(m.repeated_s) + " more, repeated" : "");
  }
  if (m.time_s > 0) {
    figures += figure_html(
        "Tokens per second", number_text(static_cast<double>(m.tokens) / m.time_s),
        m.bound_pct.empty() ? "" : percent_text(m.bound_pct.all.mean()) + " of the bound");
  }
  if (run.peak_bytes() > 0) {
    figures +=
        figure_html("Peak memory", bytes_text(run.peak_bytes()),
                    m.peak_device_bytes > 0
                        ? bytes_text(static_cast<double>(m.peak_device_bytes)) + " on devices"
                        : "of the process");
  }
  return "<header><p class=\"mark\">hearth report</p><h1>" + escaped(run.name) + "</h1><p>" +
         state_badge(run) + "</p><dl class=\"figures\">" + figures + "</dl></header>\n";
}

/// The lines that a run ends with on the console.
static std::string loading_lines(const RunHistory& run) {
  const std::string result = run.directory + "/" + run.result, name = Json(result).dump();
  const bool speaks = file_info(result + "/tokenizer.json").kind == FileKind::regular;
  std::string text = "from transformers import AutoModelForCausalLM";
  text += speaks ? ", AutoTokenizer\n" : "\n";
  if (run.result == "adapter") {
    text += "from peft import PeftModel\nbase = AutoModelForCausalLM.from_pretrained(" +
            Json(run.option("model")).dump() + ")\nmodel = PeftModel.from_pretrained(base, " +
            name + ")";
  } else {
    text += "model = AutoModelForCausalLM.from_pretrained(" + name + ")";
  }
  return text + (speaks ? "\ntokenizer = AutoTokenizer.from_pretrained(" + name + ")" : "");
}

std::string facts_section(const RunHistory& run) {
  const JournalHistory& journal = run.journal;
  std::string rows = row_html("Model", code(run.option("model")));
  std::string kind = named(journal.plan, "family");
  const std::string type = named(journal.plan, "compute_dtype");
  if (!type.empty()) kind += (kind.empty() ? "" : ", ") + std::string("computed in ") + type;
  rows += row_html("Family", escaped(kind));
  rows += row_html("Parameters", escaped(parameters_text(run)));
  rows += row_html("Method", escaped(run.option("method")));
  rows += row_html("Data", code(run.option("data")));
  const std::string eval_data = run.option("eval-data");
  rows += row_html("Evaluation data", eval_data == "[]" ? "" : code(eval_data));
  rows += row_html("Began", escaped(date_text(journal.began)));
  rows += row_html(journal.end == RunEnd::finished ? "Ended" : "Last event",
                   escaped(date_text(journal.last_time)));
  if (journal.resumes > 0) rows += row_html("Resumed", plural_text(journal.resumes, "time"));
  if (journal.saves > 0) {
    rows += row_html("Saved states", count_text(journal.saves) + ", the last of step " +
                                         count_text(journal.last_saved_step));
  }
  rows += row_html("Run directory", code(run.directory));
  std::string html = "<section class=\"card\"><h2>The run</h2><table class=\"facts\"><tbody>" +
                     rows + "</tbody></table>";
  if (!run.result.empty()) {
    html += "<h3>Load the result</h3><pre>" + escaped(loading_lines(run)) + "</pre>";
  }
  return html + "</section>\n";
}

}  // namespace hearth
