// A training run: what the loop in trainer.cpp stands on. Private to the room.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/chat/template_files.h"
#include "record/journal.h"
#include "record/metrics.h"
#include "record/run_directory.h"
#include "record/run_reporter.h"
#include "record/tensorboard.h"
#include "state/background_save.h"
#include "state/state_search.h"
#include "train/planned_run.h"
#include "train/progress.h"
#include "train/resume.h"
#include "train/session.h"
#include "train/signals.h"
#include "train/text_samples.h"
#include "train/trainer.h"
#include "verdict/gradient_record.h"
#include "verdict/routing.h"
#include "verdict/verdict.h"

namespace hearth {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Everything that a step needs, and what happens before, between and after steps.
class TrainingRun {
 public:
  /// Locks the run directory, then plans; changes nothing else on disk. Usage and input errors.
  TrainingRun(const TrainConfig& config, RunReporter& reporter);

  /// The state to go on from, as its manifest tells; nullopt: from step 1.
  std::optional<SavedState> choose_state();
  /// Refuses a state or a result of another run. If the run has ended, reads the whole state, which
  /// nothing else would do, and falls back to an older one if it is damaged. Returns the state that
  /// the run has. Changes nothing on disk.
  std::optional<SavedState> check(std::optional<SavedState> state);
  /// Whether nothing is left to do: the result is there, and the newest state is of the last step,
  /// or of an earlier one if the run ended without saving its last (--final-state off).
  bool has_ended(const std::optional<SavedState>& state) const;
  /// For a run that has ended: removes leftovers, sets damaged states aside, and reports the end,
  /// with the alarm if the run ended with one.
  ExitCode report_end();
  /// Reserves memory, reads weights or the state, opens the logs, says what will run.
  void open(const std::optional<SavedState>& state);

  bool has_steps_left() const { return progress_.step < steps_; }
  std::optional<StepResult> step();
  void record(const StepResult& result);
  /// Does nothing where the step has its result: a resumed run makes up for what a signal cut off.
  void evaluate(const char* when);
  bool evaluation_due() const;
  /// Lets the model write behind the first rows, where that was asked for: `when` in the journal.
  void write_samples(const char* when);
  /// Begins a save where one is due; it is written under the steps that follow. Storage error when
  /// three saves in a row have failed.
  void save_if_due();
  /// After a signal: the last whole step is saved.
  ExitCode stop();
  /// The last state and the result; numeric error if the run came to nothing. Stopped by a signal,
  /// it leaves the result to the next start.
  ExitCode finish();
  /// Notes in the journal, if it is open and can be written, with what error the run ends.
  void note_failure(const Error& error);

 private:
  /// Usage or input error unless a run with these options may go on from the state.
  void accept(const SavedState& state);
  /// The same for a result without a saved state, as far as the journal tells whose it is. Usage
  /// error where no run left it.
  void require_own_result();
  /// Reads a state's content, or that of the next older one that is whole.
  SavedState load(SavedState state);
  /// Of this run directory, not one that --resume named.
  bool is_ours(const SavedState& state) const;
  /// Sets rejected states of this directory aside, and says so in the journal.
  void settle_rejected();
  void describe();
  /// What was warned of since the last call.
  void journal_warnings();
  void count(const StepResult& result, const std::vector<MicroBatch>& batches);
  /// Begins to save the state of the last step, unless it is saved; after the save in flight.
  void begin_save();
  /// Notes what became of the save in flight, if it has ended; with `wait`, when it has.
  void end_save(bool wait);
  /// The state of the last step is durable when this returns; else a storage error.
  void save_now();
  void write_result();
  /// What the verdict rests on, but for memory.
  RunFacts examine();
  /// In the journal and to people, after the plan was graded; whether it is ok.
  bool tell_verdict(RunFacts facts);
  void tell_verdict(const std::string& text);
  ExitCode code_of_end(bool ok) const;
  /// Where things are, and the lines of Python that load the result.
  void tell_end();
  /// plan.json with what was measured.
  void grade_plan();

  const TrainConfig& config_;
  RunReporter& reporter_;
  StopSignals signals_;  // before anything is written
  RunDirectory directory_;
  PlannedRun run_;
  const PlacedModel& setup_;
  TrainingData& data_;
  const Plan& plan_;
  int64_t steps_ = 0;
  int64_t warmup_ = 0;

  std::optional<StateSearch> search_;  // for older states, where the chosen one is damaged; none if
                                       // --resume names one state
  std::vector<RejectedState> rejected_;
  RunIdentity identity_;
  std::vector<std::string> changes_;  // of options, since the state that the run goes on from
  std::unique_ptr<Session> session_;
  StateRegistry registry_;
  Progress progress_;
  Routing routing_;
  GradientRecord gradients_;
  FrozenContent frozen_at_start_;
  std::vector<TemplateSource> templates_;  // that the result carries; none: the base's
  FileChanges result_changes_;             // of the base's companion files, for these templates
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<TensorBoardLog> scalars_;

  double step_lr_ = 0;
  Clock::time_point step_begin_;
  Clock::time_point last_save_ = Clock::now();
  uint64_t saving_bytes_ = 0;       // of memory, of the largest save
  std::vector<PlaceLines> graded_;  // the memory of the plan with what was measured
  int64_t saved_step_ = -1;         // of the newest durable state
  int failed_saves_ = 0;            // in a row
  std::string failure_;             // of the last save, if it failed
  std::optional<Digest> root_;      // of the state, where the last line of metrics has it
  int64_t evaluated_step_ = -1;     // the last one with a result
  double step_seconds_ = 0, best_step_s_ = 0;  // of the steps of this process
  int64_t steps_here_ = 0;
  double save_begin_s_ = 0;  // that the run stood for the digests of the save in flight
  double io_s_ = 0;          // writing states and logs, since the last line
  BackgroundSave save_;      // last: it reads what stands above while it ends
};

}  // namespace hearth
