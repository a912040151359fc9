// What a rank other than 0 owns of the state: it answers rank 0, reads its part when a run resumes, and
// writes files of its own while steps go on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/pool.h"
#include "base/state_registry.h"
#include "comm/rank_team.h"
#include "state/state_parts.h"
#include "train/state_channel.h"

namespace hearth {

/// Rank 0 has FarState (train/far_state.h). Calls come from the rank's main thread.
class OwnState {
 public:
  /// The registry has the weights and moments that the rank owns (register_parameters). It, the team
  /// and the pool must outlive the object. `run_dir`: of rank 0, as this rank reaches it. All ranks
  /// call make_state_channels at this point.
  OwnState(RankTeam& team, const StateRegistry& registry, std::string run_dir, const Pool& pool);
  /// Waits for the save in flight.
  ~OwnState();
  OwnState(const OwnState&) = delete;
  OwnState& operator=(const OwnState&) = delete;

  /// Tells rank 0 the digests (FarState::take_digests).
  void tell_digests();
  /// Reads its part of the state that rank 0 names, if it finds that. Else rank 0 fills the memory of
  /// views. Until rank 0 ends it. The channel is about no step yet.
  void load();
  /// Begins to do what rank 0's save of the state of this step asks for, on a thread of its own. The
  /// save before it has ended. Numeric error if a weight is not finite.
  void begin_save(int64_t step);
  /// Before an update of the step changes the first `views` views. Until then the rank is away.
  void wait_until_safe(size_t views);

 private:
  void send(const std::vector<Digest>& digests);
  /// What rank 0 asks for in a load.
  void take_part();
  /// Answers StateRequest::load.
  void read_part(const std::string& named);
  /// Answers rank 0 until the save is over.
  void serve(int64_t step);
  /// The text that answers StateRequest::write.
  std::string write_files(int64_t step);
  void join();

  RankTeam& team_;
  const StateRegistry& registry_;
  const std::string run_dir_;
  const Pool& pool_;
  StateChannel channel_;
  std::unique_ptr<StateParts> parts_;  // of the last save
  std::thread thread_;
};

}  // namespace hearth
