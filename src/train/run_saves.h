// Decides when a run saves its state, and records the outcome. A background thread writes one state
// at a time while the next steps run.
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
#include "train/best_states.h"
#include "train/progress.h"
#include "train/rank_crew.h"

namespace hearth {

class RunSaves {
 public:
  /// Inputs of a save. They must outlive the RunSaves.
  struct Source {
    const StateRegistry& registry;
    const Progress& progress;
    const Sampler& sampler;
    std::function<Json()> extra;  // more members of the manifest, such as the run's identity
    BestStates& best;             // a save is due for a state among the best
    const Pool* pool = nullptr;
    std::function<void()> settle = {};  // called before the state is read: makes what is due
    RankCrew* crew = nullptr;           // ranks that save their parts; null: there are none
  };

  /// `saved_step`: step of this run's newest state in the directory; -1: none.
  RunSaves(const TrainConfig& config, const RunDirectory& directory, Source source, RunLogs& logs,
           RunReporter& reporter, int64_t saved_step);

  /// Begins a save if one is due. Storage error after three failed saves in a row.
  void begin_if_due();
  /// Waits for the save in flight, then begins to save the state of the last step unless it is
  /// saved.
  void begin();
  /// Records the outcome of the save in flight, if it has ended. With `wait`, waits for its end.
  void end(bool wait);
  /// Saves and waits: the state of the last step is durable on return. Storage error if it fails.
  void save_now();
  /// Waits until the first `views` views of the state may change (BackgroundSave::wait_until_safe).
  void wait_until_safe(size_t views) { save_.wait_until_safe(views); }

  /// Sets the digest of the current state, if the metrics have one. The next save checks it.
  void expect_root(const std::optional<Digest>& root) { root_ = root; }
  /// Why the last save failed; empty if it did not fail.
  const std::string& failure() const { return failure_; }
  /// Memory that saves took at most.
  uint64_t memory_bytes() const { return memory_bytes_; }
  /// Seconds of saving since the last call.
  double take_seconds();

 private:
  const TrainConfig& config_;
  const RunDirectory& directory_;
  Source source_;
  RunLogs& logs_;
  RunReporter& reporter_;

  int64_t saved_step_;     // step of the newest durable state
  Stopwatch since_begin_;  // time since the last save began
  double begin_s_ = 0;     // seconds that the run waited for digests of the save in flight
  double seconds_ = 0;
  int failed_ = 0;  // in a row
  std::string failure_;
  uint64_t memory_bytes_ = 0;
  std::optional<Digest> root_;
  BackgroundSave save_;  // last: it uses the members above until it ends
};

}  // namespace hearth
