// A training run, driven by the loop in trainer.cpp. Private to src/train/.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "checkpoint/model_card.h"
#include "data/chat/template_files.h"
#include "record/run_logs.h"
#include "train/best_states.h"
#include "train/lr_schedule.h"
#include "train/planned_run.h"
#include "train/progress.h"
#include "train/rank_crew.h"
#include "train/resume_choice.h"
#include "train/run_saves.h"
#include "train/session.h"
#include "train/signals.h"
#include "train/straggler_watch.h"
#include "train/trainer.h"
#include "train/unseen_updates.h"
#include "verdict/gradient_record.h"
#include "verdict/loss_record.h"
#include "verdict/routing.h"
#include "verdict/verdict.h"

namespace hearth {

/// Everything before, during and after steps. ResumeChoice chooses the state to resume; RunSaves
/// saves states.
class TrainingRun {
 public:
  /// Locks the run directory, then plans. Changes nothing else on disk. Usage and input errors.
  /// `launched`: the ranks of a launch, which this one leads, or null.
  TrainingRun(const TrainConfig& given, RunReporter& reporter, RankTeam* launched = nullptr);

  /// ResumeChoice::choose and ::has_ended.
  std::optional<SavedState> choose_state() { return resume_->choose(); }
  bool has_ended(const std::optional<SavedState>& state) const { return resume_->has_ended(state); }
  /// For a run that has ended: removes leftovers, sets damaged states aside, and reports the end
  /// and its alarm, if any.
  ExitCode report_end();
  /// train/run_length.h, for a run that does not resume. Writes nothing.
  void require_learning() {
    const int64_t rows = data_.rows.training().rows_in_epoch();
    hearth::require_learning(config_, course_, rows, reporter_);
  }
  /// Reserves memory, loads weights or the state, opens the logs, describes the run.
  void open(const std::optional<SavedState>& state);

  bool has_steps_left() const { return progress_.step < *run_.steps && !ends_early(); }
  /// Trains one step; nullopt if a signal abandoned it.
  std::optional<StepResult> step();
  /// Writes the step's metrics. Numeric error after three non-finite steps in a row.
  void record(const StepResult& result);
  /// Does nothing if this step was evaluated already. A resumed run repeats an interrupted
  /// evaluation.
  void evaluate(const char* when);
  bool evaluation_due() const;
  /// With --samples, lets the model continue the first rows. `when`: for the journal.
  void write_samples(const char* when);
  /// Whether a signal came to any rank, or --max-time is over.
  bool must_stop() const;
  /// RunSaves::begin_if_due. The state of an evaluation among the best is always due.
  void save_if_due() { saves_->begin_if_due(); }
  /// After a signal, or when the time is over: saves the state of the last whole step.
  ExitCode stop();
  /// Saves the last state and writes the result. Numeric error if no step updated weights, or if
  /// the last step was not finite. After a signal, leaves the result to the next start.
  ExitCode finish();
  /// With several ranks: ends the others with this error, and raises it as the error of all ranks,
  /// which names the rank that failed. Else, and for a stop, does nothing.
  void end_ranks(const Error& error);
  /// Writes the error that ends the run to the journal, if it is open and writable.
  void note_failure(const Error& error);

 private:
  /// Of a rank that died or fell silent, for the journal.
  void note_rank(const PeerFailure& failure);
  /// Loads the state, or an older intact one, and returns it.
  SavedState restore(const SavedState& chosen);
  /// Opens the logs and reports how the run begins. `state`: the state to resume, or null.
  void open_logs(const SavedState* state);
  StepHooks hooks();
  /// Session::drain. Its time is part of the next line of the metrics.
  void drain();
  /// Drains, and brings here the weights that other ranks have.
  void settle();
  void count(const StepResult& result, const std::vector<MicroBatch>& batches);
  /// Session::shrink_devices, with its lines in the journal. Saves the state and raises a device error
  /// if a budget is too small for the run.
  void shrink_devices();
  /// Before a save, if devices hold the most used experts: those that the steps since the last save used
  /// most take the places of others (train/moved_experts.h). A resume goes by the same counts.
  void follow_popularity();
  /// Sets `ranks`, and adds the bytes between ranks.
  void record_ranks(const StepResult& result, StepMetrics& metrics);
  /// Sets busy, limit, stall_s and cpu_s.
  void record_use(const StepResult& result, StepMetrics& metrics);
  void count_skipped(const StepMetrics& metrics);
  /// Whether --early-stopping ends the run at this step.
  bool ends_early() const {
    return config_.early_stopping > 0 && best_.without_best() >= config_.early_stopping;
  }
  /// The best states of the state to resume, if they are in this directory, with its evaluation.
  void restore_best(const SavedState& state, std::optional<double> loss);
  /// With --load-best, the best state, unless it is the last one.
  std::optional<ScoredState> older_result();
  /// For the model card of the result: of this state, or of the last step.
  CardRows rows_of_card(const std::optional<ScoredState>& older) const;
  /// Journal and notes of an end by --early-stopping.
  void note_early_end();
  /// Replaces the trained weights by the state's. Storage error if it is damaged.
  void load_best(const ScoredState& best);
  /// The facts of the verdict, without measured memory.
  RunFacts examine();
  /// Reports how well the places with cost tables kept their times.
  void note_paces() const;
  /// Adds measurements to plan.json. Returns the measured peak of the host.
  uint64_t grade_plan();
  /// Writes the verdict to the journal and the reporter. Returns whether it is ok.
  bool give_verdict(const RunFacts& facts);
  ExitCode code_of_end(bool ok) const;
  /// The signal that this rank or another got; 0: none.
  int signal() const;

  RunReporter& reporter_;
  StopSignals signals_;  // constructed before anything is written
  RunDirectory directory_;
  PlannedRun run_;
  const TrainConfig& config_;  // of run_
  const PlacedModel& model_;
  TrainingData& data_;
  const LrCourse course_;

  std::vector<TemplateSource> templates_;  // chat templates of the result; empty: the base's
  FileChanges result_changes_;             // to the base's companion files, for templates_
  std::optional<ResumeChoice> resume_;     // made after the plan fits: it reads the whole model
  RunIdentity identity_;
  RankTeam* const launched_;        // ranks that are processes; null: threads, or none
  std::unique_ptr<RankCrew> crew_;  // the other ranks; null: there are none
  StragglerWatch stragglers_;
  std::unique_ptr<Session> session_;
  StateRegistry registry_;
  Progress progress_;
  Routing routing_;
  GradientRecord gradients_;
  UnseenUpdates unseen_updates_{gradients_};
  /// Since the last save: the tokens of experts, of the layers with experts, and all tokens.
  std::vector<std::vector<double>> recent_experts_;
  int64_t recent_tokens_ = 0;
  LossRecord losses_;
  BestStates best_;
  FrozenContent frozen_at_start_;
  std::unique_ptr<RunLogs> logs_;

  double step_lr_ = 0;
  Stopwatch start_;  // of this start of the run
  Stopwatch step_time_;
  double step_s_ = 0, drain_s_ = 0;
  int64_t collected_step_ = -1;  // whose weights were last brought here from other ranks
  Stopwatch since_evaluation_;
  bool holds_best_ = false;                    // weights in memory: the best state's
  std::optional<double> eval_loss_;            // of evaluated_step_
  double log_s_ = 0;                           // time to write the last line of the logs
  int64_t evaluated_step_ = -1;                // last evaluated step
  double step_seconds_ = 0, best_step_s_ = 0;  // over the steps of this process
  int64_t steps_here_ = 0;
  int signal_of_ranks_ = 0;           // that came to one of them, as it told after a step; 0: none
  std::vector<int32_t> readers_;      // of several ranks: those that read the state by themselves
  std::vector<uint64_t> crew_bytes_;  // that the other ranks took
  std::map<std::string, uint64_t>
      sent_before_;                          // bytes of links between ranks, up to the last step
  std::map<std::string, PacedTasks> paced_;  // by place, over the steps of this process
  std::unique_ptr<RunSaves> saves_;          // last: it reads the members above until it ends
};

}  // namespace hearth
