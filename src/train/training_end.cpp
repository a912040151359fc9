// Saved states of a run, and its end.
#include "base/file_ops.h"
#include "base/stop.h"
#include "base/system.h"
#include "budget/plan_grade.h"
#include "peft/readers.h"
#include "train/training_run.h"

namespace hearth {

namespace {

constexpr int kMaxFailedSaves = 3;  // in a row

}  // namespace

void TrainingRun::save_if_due() {
  end_save(false);
  const Interval& every = config_.save_every;
  const bool by_steps = every.steps && *every.steps > 0 && progress_.step % *every.steps == 0;
  const bool by_time = every.seconds && seconds_since(last_save_) >= *every.seconds;
  if (by_steps || by_time) begin_save();
}

void TrainingRun::begin_save() {
  end_save(true);
  if (saved_step_ == progress_.step) return;
  directory_.require_there();
  last_save_ = Clock::now();
  Json extra = to_json(identity_);
  extra["gradients"] = gradients_.to_json();
  SaveRequest request{directory_.path(), progress_.step, static_cast<int>(config_.keep), extra,
                      [this] {
                        metrics_->sync();
                        directory_.require_there();
                      }};
  const uint64_t before = resident_bytes();
  auto save = std::make_unique<StateSave>(registry_, std::move(request), &session_->pool());
  saving_bytes_ = std::max(saving_bytes_, resident_bytes() - std::min(resident_bytes(), before));
  HEARTH_CHECK(!root_ || *root_ == save->digest().root,
               "the state changed after the digest of its step was taken");
  save_.begin(std::move(save));
  save_begin_s_ = seconds_since(last_save_);
}

void TrainingRun::end_save(bool wait) {
  const auto outcome = save_.end(wait);
  if (!outcome) return;
  io_s_ += save_begin_s_ + outcome->seconds;
  failure_ = outcome->failure;
  if (failure_.empty()) {
    failed_saves_ = 0;
    saved_step_ = outcome->step;
    journal_->event("state_saved", {{"step", outcome->step},
                                    {"begin_s", save_begin_s_},
                                    {"seconds", outcome->seconds},
                                    {"waited_s", outcome->waited_s}});
  } else {
    ++failed_saves_;
    reporter_.warn_of_event("the state of step " + std::to_string(outcome->step) +
                            " could not be saved; older states are intact: " + failure_);
    journal_->event("save_failed", {{"step", outcome->step}, {"reason", failure_}});
  }
  journal_warnings();
  if (failed_saves_ >= kMaxFailedSaves) {
    throw storage_error(failure_ + " (three saves in a row have failed)");
  }
}

void TrainingRun::save_now() {
  begin_save();
  end_save(true);
  if (saved_step_ != progress_.step) throw storage_error(failure_);
}

ExitCode TrainingRun::stop() {
  journal_->event("signal", {{"signal", stop_signal()}, {"step", progress_.step}});
  if (progress_.step > 0) save_now();
  reporter_.note(
      "stopped by a signal after step " + std::to_string(progress_.step) +
      (progress_.step > 0 ? ", the state is saved; the same command resumes from there" : ""));
  return ExitCode::stopped;
}

void TrainingRun::grade_plan() {
  MeasuredMemory measured = session_->measured_memory();
  measured.saving = saving_bytes_;
  graded_ = graded(plan_, measured);
  Json json = plan_json(setup_, run_.times, graded_);
  if (steps_here_ > 0) {
    json["measured_time_s"] = step_seconds_ / static_cast<double>(steps_here_);
    json["measured_best_time_s"] = best_step_s_;
    json["measured_steps"] = steps_here_;
  }
  directory_.write_plan(json);
}

void TrainingRun::write_result() {
  directory_.require_there();
  const std::string result = directory_.result();
  const auto write = [&](const std::string& path) {
    if (config_.method == Method::full) {
      return write_checkpoint(session_->table(), *setup_.opened->checkpoint, path, result_changes_);
    }
    AdapterFileOptions options;
    options.layout = config_.adapter_layout;
    const ModelName base = model_name(config_);
    options.base_name = base.name;
    options.revision = base.revision;
    options.changes = result_changes_;
    write_adapter(session_->table(), *setup_.opened->checkpoint, options, path);
  };
  if (file_info(result).kind == FileKind::none) return write(result);
  // That of an earlier end of the run stays until the new one is whole.
  const std::string fresh = directory_.path() + "/.tmp-new-result";
  const std::string replaced = directory_.path() + "/.trash-result";
  remove_tree(fresh);
  remove_tree(replaced);
  write(fresh);
  rename_no_replace(result, replaced);
  rename_no_replace(fresh, result);
  sync_directory(directory_.path());
  remove_tree(replaced);
}

void TrainingRun::tell_end() {
  const std::string result = directory_.result(), name = Json(result).dump();
  reporter_.note("finished: " + result);
  reporter_.note("  what happened, on one page: hearth report " + directory_.path() +
                 "  (from metrics.jsonl, journal.jsonl and plan.json there)");
  const bool speaks = file_info(result + "/tokenizer.json").kind == FileKind::regular;
  reporter_.note(std::string("  from transformers import AutoModelForCausalLM") +
                 (speaks ? ", AutoTokenizer" : ""));
  if (config_.method == Method::lora) {
    reporter_.note("  from peft import PeftModel");
    const ModelName base = model_name(config_);
    const std::string revision =
        base.revision.empty() ? "" : ", revision=" + Json(base.revision).dump();
    reporter_.note("  base = AutoModelForCausalLM.from_pretrained(" + Json(base.name).dump() +
                   revision + ")");
    reporter_.note("  model = PeftModel.from_pretrained(base, " + name + ")");
  } else {
    reporter_.note("  model = AutoModelForCausalLM.from_pretrained(" + name + ")");
  }
  if (speaks) reporter_.note("  tokenizer = AutoTokenizer.from_pretrained(" + name + ")");
  if (config_.method == Method::full) return;
  for (const std::string& line : reader_notes(setup_.table, config_.adapter_layout)) {
    reporter_.note("  # " + line);
  }
}

ExitCode TrainingRun::finish() {
  if (config_.final_state) begin_save();
  if (progress_.updates == 0 || progress_.skipped_in_a_row > 0) {
    end_save(true);
    throw numeric_error(
        "the run ends with a loss or gradient that is not finite; no result is written");
  }
  evaluate("end");
  write_samples("end");
  end_save(true);
  if (config_.final_state && !failure_.empty()) throw storage_error(failure_);
  std::optional<RunFacts> facts;
  try {
    write_result();
    facts.emplace(examine());
  } catch (const Error& error) {
    if (error.code() == ExitCode::stopped) return stop();
    throw;
  }
  if (!config_.trace.empty()) {
    write_file_atomically(config_.trace, chrome_trace(plan_.train->schedule, session_->trace()));
  }
  grade_plan();
  const bool ok = tell_verdict(std::move(*facts));
  journal_->event("finished", {{"step", progress_.step}, {"run", to_json(identity_)}});
  tell_end();
  if (!failure_.empty()) throw storage_error(failure_ + "; the result is complete");
  return code_of_end(ok);
}

}  // namespace hearth
