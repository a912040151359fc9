// What other ranks own of the state, as rank 0 sees it. Rank 0 answers for the whole state: it lists
// all of it, publishes what all have written, and has others read their part when a run resumes, or
// fills their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/place_memory.h"
#include "comm/owners.h"
#include "comm/rank_team.h"
#include "model/parameter_table.h"
#include "state/parameter_state.h"
#include "state/state_load.h"
#include "state/state_save.h"
#include "train/state_channel.h"

namespace hearth {

/// Of rank 0. The others have OwnState (train/own_state.h). Calls of OtherWriters, of OtherReaders and of
/// the memory of views come from one thread at a time: the save that is in flight, or the load.
class FarState final : public TensorsElsewhere, public OtherWriters, public OtherReaders {
 public:
  /// `writes`: by rank, whether it writes its files by itself, since it reaches rank 0's --out. What
  /// others own is read from their memory. All ranks call make_state_channels at this point.
  FarState(RankTeam& team, const ParameterTable& table, const Owners& owners,
           std::vector<bool> writes);
  ~FarState() override;

  void show(TensorId id, CopyRole role, size_t bytes, StateView& view) const override;

  /// Takes the digests that the owners have now. All ranks call it, the others OwnState's.
  void take_digests(RankTeam& team);
  /// From here on the channels are about the state of this step.
  void begin_step(int64_t step);
  /// After a load: the owners have what it wrote to their memory, or what they read. A bug if not.
  void require_arrived() const;
  /// The ranks that have read a state by themselves in the load, in order, with rank 0.
  std::vector<int32_t> readers() const;

  void begin_reading(const SavedState& state) override;
  void end_reading() override;
  /// No more state is loaded.
  void end_load();

  void begin(const std::string& directory) override;
  void wait(StateParts& parts) override;
  bool is_quiet() const override { return is_quiet_; }
  void beat() override { world_.beat(); }
  void end() noexcept override;

 private:
  class FarView;  // memory of a tensor's copy at its owner

  /// Whether a rank moves its part between memory and files now.
  bool reaches_files(size_t rank) const { return is_loading_ ? reads_[rank] : writes_[rank]; }
  /// What a rank that has read answers. Not empty: the file that is wrong, and why.
  std::string hear_read(size_t rank);

  World& world_;
  const std::vector<bool> writes_;
  std::vector<bool> reads_;    // by rank: it finds the state that is loaded
  std::vector<bool> answers_;  // by rank: what came of its read is still to be heard
  std::string loaded_;         // the state's directory
  bool is_loading_ = false;
  std::vector<int32_t> owner_;  // by tensor
  std::vector<size_t> index_;   // by tensor: among those of its owner
  std::vector<size_t> count_;   // by rank: trained tensors that it owns
  std::vector<StateChannel> channels_;
  std::vector<std::vector<Digest>> digests_;                  // by rank and view
  std::vector<std::vector<std::unique_ptr<FarView>>> views_;  // the same
  int64_t step_ = 0;
  bool is_quiet_ = true;
};

}  // namespace hearth
