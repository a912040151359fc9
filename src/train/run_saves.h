// When a run saves its state, and what becomes of each save. A state is written in the background
// while the next steps run, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/pool.h"
#include "base/stopwatch.h"
#include "record/run_logs.h"
#include "setup/config.h"
#include "state/background_save.h"
#include "train/progress.h"

namespace hearth {

class RunSaves {
 public:
  /// What a save reads. Everything must outlive the RunSaves.
  struct Source {
    const StateRegistry& registry;
    const Progress& progress;
    std::function<Json()> extra;  // of the manifest: the identity of the run and more
    const Pool* pool = nullptr;
  };

  /// `saved_step`: of the newest state that the directory holds of this run; -1: none.
  RunSaves(const TrainConfig& config, const RunDirectory& directory, Source source, RunLogs& logs,
           RunReporter& reporter, int64_t saved_step);

  /// Begins a save if one is due. Storage error when three saves in a row have failed.
  void begin_if_due();
  /// Begins to save the state of the last step, unless it is saved; waits for the save in flight
  /// first.
  void begin();
  /// Notes what became of the save in flight, if it has ended; with `wait`, when it has.
  void end(bool wait);
  /// The state of the last step is durable when this returns; else a storage error.
  void save_now();
  /// Returns when `views` of the state may change (BackgroundSave::wait_until_safe).
  void wait_until_safe(size_t views) { save_.wait_until_safe(views); }

  /// The digest of the current state, if it was taken for the metrics: the next save must have it.
  void expect(const std::optional<Digest>& root) { root_ = root; }
  /// The reason why the last save failed; empty: it did not.
  const std::string& failure() const { return failure_; }
  /// Memory that the largest save took.
  uint64_t memory_bytes() const { return memory_bytes_; }
  /// Seconds that saves took since the last call.
  double take_seconds();

 private:
  const TrainConfig& config_;
  const RunDirectory& directory_;
  Source source_;
  RunLogs& logs_;
  RunReporter& reporter_;

  int64_t saved_step_;     // of the newest durable state
  Stopwatch since_begin_;  // of the last save
  double begin_s_ = 0;     // that the run stood for the digests of the save in flight
  double seconds_ = 0;
  int failed_ = 0;  // in a row
  std::string failure_;
  uint64_t memory_bytes_ = 0;
  std::optional<Digest> root_;
  BackgroundSave save_;  // last: it uses the members above until it ends
};

}  // namespace hearth
