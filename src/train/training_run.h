// A training run: what the loop in trainer.cpp stands on. Private to the room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "data/chat/template_files.h"
#include "record/run_logs.h"
#include "train/planned_run.h"
#include "train/progress.h"
#include "train/resume_choice.h"
#include "train/run_saves.h"
#include "train/session.h"
#include "train/signals.h"
#include "train/trainer.h"
#include "verdict/gradient_record.h"
#include "verdict/routing.h"
#include "verdict/verdict.h"

namespace hearth {

/// Everything that a step needs, and what happens before, between and after steps. The state to go
/// on from is chosen by ResumeChoice; states are saved by RunSaves.
class TrainingRun {
 public:
  /// Locks the run directory, then plans; changes nothing else on disk. Usage and input errors.
  TrainingRun(const TrainConfig& config, RunReporter& reporter);

  /// ResumeChoice::choose and ::has_ended.
  std::optional<SavedState> choose_state() { return resume_->choose(); }
  bool has_ended(const std::optional<SavedState>& state) const { return resume_->has_ended(state); }
  /// For a run that has ended: removes leftovers, sets damaged states aside, and reports the end,
  /// with the alarm if the run ended with one.
  ExitCode report_end();
  /// Reserves memory, reads weights or the state, opens the logs, says what will run.
  void open(const std::optional<SavedState>& state);

  bool has_steps_left() const { return progress_.step < *run_.steps; }
  /// Trains one step; nullopt if a signal abandoned it.
  std::optional<StepResult> step();
  /// Writes the line of metrics. Numeric error after three steps in a row that were not finite.
  void record(const StepResult& result);
  /// Does nothing if the step has its result: a resumed run makes up for what a signal cut off.
  void evaluate(const char* when);
  bool evaluation_due() const;
  /// Lets the model continue the first rows if --samples asks for it; `when` goes to the journal.
  void write_samples(const char* when);
  /// RunSaves::begin_if_due.
  void save_if_due() { saves_->begin_if_due(); }
  /// After a signal: saves the state of the last whole step.
  ExitCode stop();
  /// Saves the last state and writes the result; numeric error if the run came to nothing. Stopped
  /// by a signal, it leaves the result to the next start.
  ExitCode finish();
  /// Notes in the journal, if it is open and can be written, with what error the run ends.
  void note_failure(const Error& error);

 private:
  /// Reads the state, or an older one that is whole, and returns it.
  SavedState restore(const SavedState& chosen);
  /// Opens the logs and says how the run begins. `state`: that it goes on from, or null.
  void open_logs(const SavedState* state);
  void count(const StepResult& result, const std::vector<MicroBatch>& batches);
  void count_skipped(const StepMetrics& metrics);
  /// The facts of the verdict, without measured memory.
  RunFacts examine();
  /// plan.json with what was measured. Returns the measured peak of the host.
  uint64_t grade_plan();
  /// To the journal and to people. Whether the verdict is ok.
  bool give_verdict(const RunFacts& facts);
  ExitCode code_of_end(bool ok) const;

  const TrainConfig& config_;
  RunReporter& reporter_;
  StopSignals signals_;  // before anything is written
  RunDirectory directory_;
  PlannedRun run_;
  const PlacedModel& model_;
  TrainingData& data_;
  const int64_t warmup_;

  std::vector<TemplateSource> templates_;  // that the result carries; none: the base's
  FileChanges result_changes_;             // of the base's companion files, for these templates
  std::optional<ResumeChoice> resume_;     // made when the run fits: it reads the whole model
  RunIdentity identity_;
  std::unique_ptr<Session> session_;
  StateRegistry registry_;
  Progress progress_;
  Routing routing_;
  GradientRecord gradients_;
  FrozenContent frozen_at_start_;
  std::unique_ptr<RunLogs> logs_;

  double step_lr_ = 0;
  Stopwatch step_time_;
  double log_s_ = 0;                           // writing the last line of the logs
  int64_t evaluated_step_ = -1;                // the last one with a result
  double step_seconds_ = 0, best_step_s_ = 0;  // of the steps of this process
  int64_t steps_here_ = 0;
  std::unique_ptr<RunSaves> saves_;  // last: it reads the members above until it ends
};

}  // namespace hearth
