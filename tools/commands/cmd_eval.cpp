// hearth eval: the loss of a checkpoint on data.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/output.h"
#include "train/evaluate.h"

namespace hearth {
namespace {

std::string report_text(const Json& report) {
  const auto number = [&](const char* key) { return report.find(key)->as_double(); };
  std::string text = fmt::format(
      "loss            {:.6f}  (cross-entropy per trained token)\n"
      "perplexity      {:.6g}\n"
      "tokens          {}\n"
      "trained tokens  {}\n",
      number("loss"), number("perplexity"), report.find("tokens")->as_int(),
      report.find("trained_tokens")->as_int());
  if (const Json* aux = report.find("aux_loss"); aux && aux->is_number()) {
    text += fmt::format("aux loss        {:.6f}\n", aux->as_double());
  }
  if (const Json* load = report.find("expert_load"); load && load->is_array()) {
    text += "expert load     ";
    for (const Json& layer : load->as_array()) text += fmt::format("{:.2f} ", layer.as_double());
    text += " (max over mean, per MoE layer)\n";
  }
  return text;
}

}  // namespace

ExitCode run_eval(const Options& options) {
  Json report;
  {
    Console console(console_settings(options));
    report = evaluate(options, console);
  }
  if (options.json) {
    print_json(report);
  } else {
    print(report_text(report));
  }
  return ExitCode::done;
}

}  // namespace hearth
