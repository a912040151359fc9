// What a run says of itself before its first step.
#include <fmt/core.h>

#include <algorithm>

#include "base/counted.h"
#include "budget/data_report.h"
#include "model/adapters.h"
#include "train/sample_preview.h"
#include "train/training_run.h"

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
      "{}; its adapters: {}, {} ({:.3g} % of the group's), {} MiB of masters, gradients and "
      "moments",
      has, counted(group.trained_tensors, "tensor"), counted(group.trained_parameters, "parameter"),
      100 * share, (group.trained_parameters * 16 >> 20) + 1);
}

}  // namespace

void TrainingRun::describe() {
  reporter_.note(fmt::format(
      "{}: {}, {} of them trained; computing in {} on {}", setup_.opened->spec.family,
      counted(all_parameters(setup_.table), "parameter"), trained_parameters(setup_.table),
      name_of(setup_.settings.compute), places_text(setup_)));
  std::string unread;
  int64_t others = 0;
  for (const auto& file : setup_.opened->checkpoint->files()) {
    for (const SafetensorsEntry& entry : file->header().entries) {
      if (setup_.opened->layout.find(entry.name) != nullptr || entry.name.ends_with("inv_freq") ||
          !setup_.opened->checkpoint->family()
               .tied_source(setup_.opened->spec, entry.name)
               .empty()) {
        continue;
      }
      if (others++ == 0) unread = entry.name;
    }
  }
  if (others > 0) {
    reporter_.note(fmt::format(
        "multi-token prediction: {} (the first is {}) copied to the result, not trained",
        counted(others, "tensor"), quoted(unread)));
  }
  if (config_.method == Method::lora) {
    for (const TrainedGroup& group : trained_groups(setup_.table))
      reporter_.note(group_line(group));
  }
  if (run_.experts) reporter_.note(experts_line(*run_.experts, setup_.opened->spec));
  if (config_.method == Method::lora) {
    const uint64_t bytes =
        adapter_bytes(setup_.table, setup_.opened->checkpoint->family(), config_.adapter_layout);
    reporter_.note(fmt::format("the adapter file will have {} MiB{}", (bytes >> 20) + 1,
                               run_.experts ? ", with zeros for experts without an adapter" : ""));
  }
  for (const std::string& line : data_lines(*run_.times.data, steps_)) reporter_.note(line);
  if (progress_.step == 0) {
    preview_samples(data_.rows.training(), config_, setup_.opened->spec.eos_ids, reporter_);
  }
  reporter_.note(
      fmt::format("{}, {} of them warm-up; coefficient of the auxiliary loss {}; plan: {} MiB of "
                  "memory, {:.0f} "
                  "tokens/s",
                  counted(steps_, "step"), warmup_, Json(setup_.settings.aux_loss).dump(),
                  plan_.host().peak >> 20, run_.times.tokens / run_.times.step.total_s()));
  reporter_.note(
      "reproducible: a repeat on this machine and build gives the same bits, with any number of "
      "threads");
  for (const std::string& change : changes_) {
    reporter_.warn_of_event(
        "changed since the saved state: " + change +
        "; the result may differ in its bits from that of an uninterrupted run");
  }
  if (progress_.step > 0) {
    reporter_.note(fmt::format("resumed after step {} of {}", progress_.step, steps_));
  }
}

}  // namespace hearth
