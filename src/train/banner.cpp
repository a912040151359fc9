#include "train/banner.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/counted.h"
#include "base/size_text.h"
#include "budget/data_report.h"
#include "budget/domain_choice.h"
#include "budget/placement_report.h"
#include "budget/policy_choice.h"
#include "budget/zebra_choice.h"
#include "model/adapters.h"
#include "peft/write.h"
#include "train/sample_preview.h"

namespace hearth {

namespace {

/// Of a run that trains adapters: what a group has, and what is trained for it.
std::string group_line(const TrainedGroup& group) {
  const std::string has = fmt::format("{}: {}, {}", group.name, counted(group.tensors, "tensor"),
                                      counted(group.parameters, "parameter"));
  if (group.trained_tensors == 0) return has + "; frozen";
  const double share = static_cast<double>(group.trained_parameters) /
                       static_cast<double>(std::max<int64_t>(1, group.parameters));
  return fmt::format(
      "{}; its adapters: {}, {} ({:.3g} % of the group's), {} of masters, gradients and "
      "moments",
      has, counted(group.trained_tensors, "tensor"), counted(group.trained_parameters, "parameter"),
      100 * share, size_text(static_cast<uint64_t>(group.trained_parameters) * 16));
}

/// Notes how many tensors of the files are copied and not trained: those of multi-token prediction.
void describe_unread(const OpenedModel& opened, Reporter& reporter) {
  std::string first;
  int64_t count = 0;
  for (const auto& file : opened.checkpoint->files()) {
    for (const SafetensorsEntry& entry : file->header().entries) {
      if (opened.layout.find(entry.name) != nullptr || entry.name.ends_with("inv_freq") ||
          !opened.checkpoint->family().tied_source(opened.spec, entry.name).empty()) {
        continue;
      }
      if (count++ == 0) first = entry.name;
    }
  }
  if (count == 0) return;
  reporter.note(
      fmt::format("multi-token prediction: {} (the first is {}) copied to the result, not trained",
                  counted(count, "tensor"), quoted(first)));
}

void describe_adapters(const PlannedRun& run, const TrainConfig& config, Reporter& reporter) {
  const PlacedModel& model = run.model;
  for (const TrainedGroup& group : trained_groups(model.table)) {
    reporter.detail(group_line(group));
  }
  if (run.experts) reporter.detail(experts_line(*run.experts, model.opened->spec));
  const uint64_t bytes =
      adapter_bytes(model.table, model.opened->checkpoint->family(), config.adapter_layout);
  reporter.detail(fmt::format("the adapter file will have {}{}", size_text(bytes),
                              run.experts ? ", with zeros for experts without an adapter" : ""));
}

/// The lines of the data that everybody wants to see; the others are for people who asked for more.
void describe_data(const PlannedRun& run, Reporter& reporter) {
  const std::vector<std::string> lines = data_lines(*run.times.data, *run.steps);
  for (const std::string& line : lines) {
    if (line.starts_with("row lengths:")) {
      reporter.detail(line);
    } else {
      reporter.note(line);
    }
  }
}

}  // namespace

void describe(const PlannedRun& run, const TrainConfig& config, int64_t warmup, bool fresh,
              Reporter& reporter) {
  const PlacedModel& model = run.model;
  reporter.note(fmt::format(
      "{}: {}, {} of them trained; computing in {} on {}", model.opened->spec.family,
      counted(all_parameters(model.table), "parameter"), trained_parameters(model.table),
      name_of(model.settings.compute), places_text(model)));
  describe_unread(*model.opened, reporter);
  if (config.method == Method::lora) {
    describe_adapters(run, config, reporter);
  } else if (run.experts) {
    reporter.detail(experts_line(*run.experts, model.opened->spec));
  }
  describe_data(run, reporter);
  for (const std::string& reason : run.data->choices.reasons) reporter.note(reason);
  if (fresh) {
    preview_samples(run.data->rows.training(), config, model.opened->spec.eos_ids, reporter);
  }
  const PlanTimes& times = run.times;
  reporter.note(fmt::format(
      "{}, {} of them warm-up; coefficient of the auxiliary loss {}; plan: {} of memory{}",
      counted(*run.steps, "step"), std::min(warmup, *run.steps),
      Json(model.settings.aux_loss).dump(), size_text(model.plan.host().peak),
      times.known ? fmt::format(", {:.0f} tokens/s", times.tokens / times.step.time_s) : ""));
  if (const std::string line = policy_line(model); !line.empty()) {
    const bool compared = !model.policy->candidates.empty();  // else there was no choice
    compared ? reporter.note(line) : reporter.detail(line);
  }
  for (const std::string& line : stage_lines(model)) reporter.detail(line);
  for (const std::string& line : zebra_lines(model, times)) reporter.detail(line);
  if (const std::string line = wire_line(model); !line.empty()) reporter.note(line);
  for (const std::string& line : domain_lines(model)) reporter.detail(line);
  for (const std::string& line : hot_lines(model)) reporter.detail(line);
  for (const std::string& line : table_lines(model)) {
    if (line.find("it has no times for") != std::string::npos) {
      reporter.note(line);
    } else {
      reporter.detail(line);
    }
  }
  for (const std::string& line : times.warnings) reporter.detail(line);
  reporter.detail(
      "reproducible: a repeat on this machine and build gives the same bits, with any number of "
      "threads");
}

}  // namespace hearth
