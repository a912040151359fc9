// Ranks 1 to N - 1 of a run, as threads of this process or as processes. Rank 0 leads: it tells the
// others what comes next, and alone writes files. Threads share what nobody changes: the opened model
// and the rows. Everything else, each rank has for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "comm/rank_team.h"
#include "state/run_identity.h"
#include "train/far_state.h"
#include "train/planned_run.h"
#include "train/rank_orders.h"

namespace hearth {

/// What all ranks must have read alike, for require_same_fields.
JsonObject read_fields(const RunIdentity& identity);

class RankCrew {
 public:
  /// Starts the ranks of a plan for several, which read the model. `run` must outlive the crew.
  explicit RankCrew(const PlannedRun& run);
  /// Ranks that are processes and wait for what follow_run hears (train/launched_run.h). They read model
  /// and data by themselves: usage error at all ranks if it is not what this one read.
  RankCrew(const PlannedRun& run, RankTeam& launched, const RunIdentity& identity);
  /// Threads that have not been let go end with an error.
  ~RankCrew();
  RankCrew(const RankCrew&) = delete;
  RankCrew& operator=(const RankCrew&) = delete;

  /// Of rank 0.
  RankTeam& team() { return *leader_; }

  // What all ranks do next. Each raises PeerError if a rank has failed.
  /// Once, when the session is made: registers the state of the model, as all ranks have it.
  void register_state(Session& session, StateRegistry& registry);
  /// Between the two the registry may be loaded (load_state), more than once. Afterwards all ranks have
  /// what they own, and the weights that they compute with. Returns the ranks that have read by
  /// themselves.
  OtherReaders& begin_load();
  std::vector<int32_t> end_load(Session& session);
  /// The other ranks begin this step, with the data from the cursor on. Rank 0 then runs its own.
  void begin_step(const StepNumbers& numbers, SamplerCursor cursor);
  /// The other ranks make the updates that are due. Rank 0 then makes its own.
  void begin_drain();
  /// After a step that changed weights, and after a drain: joins what the ranks saw of gradients.
  void join(GradientRecord& gradients);
  /// To rank 0, weights that only owners have since their updates.
  void collect(Session& session);
  /// Digests of what other ranks own, for the registry.
  void take_digests();
  /// The same, and the ranks are ready to save the state of the step while the next steps run.
  OtherWriters& begin_save(int64_t step);
  /// The ranks return. Afterwards the crew can do nothing else. Returns the bytes that each took of this
  /// process, from rank 1 on; empty if they had returned before.
  std::vector<uint64_t> let_go();

  /// Ends all ranks with an error of rank 0, and waits. Returns the error of the run. If a rank that
  /// is a thread hangs, says the error and ends the process: nothing else ends a thread.
  PeerError fail(const Error& error);

 private:
  struct Follower {
    std::unique_ptr<World> world;
    uint64_t bytes = 0;
    std::atomic<bool> has_ended = false;
    std::thread thread;
  };
  void follow(Follower& follower, const PlannedRun& run);
  bool end_within(double seconds) const;
  void join_threads();

  std::deque<Follower> followers_;
  std::atomic<bool> is_ending_ = false;
  std::vector<bool> on_disk_;     // by rank: writes its part of a state by itself
  std::unique_ptr<World> world_;  // of rank 0 and its threads
  std::unique_ptr<RankTeam> team_;
  RankTeam* leader_ = nullptr;
  std::unique_ptr<FarState> state_;
  bool running_ = true;
};

}  // namespace hearth
