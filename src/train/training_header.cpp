// What a run says of itself before its first step.
#include <algorithm>
#include <cstdio>

#include "budget/data_report.h"
#include "model/adapters.h"
#include "train/sample_preview.h"
#include "train/training_run.h"

namespace hearth {

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}

/// Of a run that trains adapters: what a group has, and what is trained for it.
std::string group_line(const TrainedGroup& group) {
  const std::string has = group.name + ": " + std::to_string(group.tensors) + " tensors, " +
                          std::to_string(group.parameters) + " parameters";
  if (group.trained_tensors == 0) return has + "; frozen";
  const double share = static_cast<double>(group.trained_parameters) /
                       static_cast<double>(std::max<int64_t>(1, group.parameters));
  return has + "; trained: " + std::to_string(group.trained_tensors) + " tensors, " +
         std::to_string(group.trained_parameters) + " parameters, " + percent(share) +
         " as many; master, gradient and moments take " +
         std::to_string((group.trained_parameters * 16 >> 20) + 1) + " MiB";
}

}  // namespace

void TrainingRun::describe() {
  reporter_.note(setup_.spec.family + ": " + std::to_string(all_parameters(setup_.table)) +
                 " parameters, " + std::to_string(trained_parameters(setup_.table)) +
                 " trained; computed in " + name_of(setup_.settings.compute) + " on " +
                 places_text(setup_));
  std::string unread;
  int64_t others = 0;
  for (const auto& file : setup_.checkpoint->files()) {
    for (const SafetensorsEntry& entry : file->header().entries) {
      if (setup_.layout.find(entry.name) != nullptr || entry.name.ends_with("inv_freq") ||
          !setup_.checkpoint->family().tied_source(setup_.spec, entry.name).empty()) {
        continue;
      }
      if (others++ == 0) unread = entry.name;
    }
  }
  if (others > 0) {
    reporter_.note("multi-token prediction: " + std::to_string(others) + " tensors (" +
                   quoted(unread) + " the first) are not trained and copied to the result");
  }
  if (config_.method == Method::lora) {
    for (const TrainedGroup& group : trained_groups(setup_.table))
      reporter_.note(group_line(group));
  }
  if (run_.experts) reporter_.note(experts_line(*run_.experts, setup_.spec));
  if (config_.method == Method::lora) {
    const uint64_t bytes =
        adapter_bytes(setup_.table, setup_.checkpoint->family(), config_.adapter_layout);
    reporter_.note("the adapter's file will have " + std::to_string((bytes >> 20) + 1) + " MiB" +
                   (run_.experts ? "; it stacks all experts, zeros for those without" : ""));
  }
  for (const std::string& line : data_lines(*run_.times.data, steps_)) reporter_.note(line);
  if (progress_.step == 0) {
    preview_samples(data_.rows.training(), config_, setup_.spec.eos_ids, reporter_);
  }
  reporter_.note("steps: " + std::to_string(steps_) + ", warm-up " + std::to_string(warmup_) +
                 "; auxiliary loss coefficient " + Json(setup_.settings.aux_loss).dump() +
                 "; memory planned " + std::to_string(plan_.host().peak >> 20) + " MiB, " +
                 Json(static_cast<int64_t>(run_.times.tokens / run_.times.step.total_s())).dump() +
                 " tokens/s predicted");
  reporter_.note(std::string("determinism") + (config_.deterministic ? " (asked for)" : "") +
                 ": replay-exact on this machine and build, for any --threads");
  for (const std::string& change : changes_) {
    reporter_.warn_of_event("changed since the saved state: " + change +
                            "; the end need not have the bits of an uninterrupted run");
  }
  if (progress_.step > 0) {
    reporter_.note("resumed at step " + std::to_string(progress_.step) + " of " +
                   std::to_string(steps_));
  }
}

}  // namespace hearth
