// The trained tensors of a step that has several logical shards, or several ranks. Here gradients
// are summed by the tree of shards, and move between ranks together with weights and moments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/place.h"
#include "comm/owners.h"
#include "comm/rank_team.h"
#include "comm/reduce.h"
#include "layers/rank_work.h"
#include "plan/schedule.h"
#include "runtime/device_stage.h"
#include "runtime/wire_experts.h"

namespace hearth {

/// The owners of all blocks, balanced by trained elements, in each layer and in all. Ranks that
/// share the experts compute with their own; with all other blocks every rank does.
Owners owners_of(const ParameterTable& table, const RankShards& shards);

/// Tells a table which blocks this rank owns, which it has copies of, those that it computes with,
/// and which of these it fetches before each use. Rank 0, which evaluates and writes the result, has
/// all weights; moments are at owners alone.
void own_blocks(ParameterTable& table, const RankShards& shards);

/// How many gradients a rank puts aside while it adds up its shards. Each is as large as the arena
/// of the gradients.
int32_t gradients_aside(const RankShards& shards);

/// The gradients of the experts of this rank, which it has once more for every other rank of its
/// group, since each rank's shards are added up apart. 0 if ranks do not share experts.
size_t guest_gradient_bytes(const ParameterTable& table, const RankShards& shards);

/// How many times this rank has them: for each other rank of its group, by position, the gradients
/// and those that are put aside; for itself 0.
std::vector<int32_t> guest_gradients(const RankShards& shards);

/// Where the gradients of this rank's experts are, with those of other ranks' rows beside them.
Place guest_place(const ParameterTable& table, const RankShards& shards);

/// The memory of what is on its way between ranks: of the largest reduce or give task of a
/// schedule, gradients that come to this rank, and what passes the host between a device and the
/// other ranks. If something is at a device (places from `hosts` on), the host's is at least
/// kMovedBytes. If messages go directly, gradients come to memory of the device.
struct StagingNeed {
  size_t host = 0, device = 0;  // bytes
};
StagingNeed staging_bytes(const Schedule& schedule, const ParameterTable& table,
                          const RankShards& shards, int32_t hosts);
/// Between steps, ranks move weights and moments in pieces of together at most so many bytes.
inline constexpr size_t kMovedBytes = size_t{4} << 20;

/// One rank. Calls come from the rank's streams, and between steps from its main thread.
class SharedParameters : public RankWork {
 public:
  /// The caller owns all of it.
  struct Memory {
    std::vector<std::span<std::byte>> gradients;  // arena of the gradients, by place
    std::vector<std::vector<std::byte*>> aside;   // by place: gradients_aside of such arenas
    Bytes staging;                                // on the host
    Bytes device_staging = {};                    // if messages go directly
    /// By position in the group that shares the experts, this rank's left out: memory of
    /// guest_gradient_bytes at guest_place, for the gradients and then for those put aside.
    std::vector<std::vector<std::byte*>> guests = {};
  };
  /// `table` is bound, and `team` is null with one rank. Both must outlive the object, and so must
  /// the devices: of all places, the first `hosts` the host's. `between_devices`: if messages go
  /// directly, else null; must outlive the object, too.
  SharedParameters(const RankShards& shards, ParameterTable& table, Memory memory, RankTeam* team,
                   std::span<Device* const> devices, int32_t hosts,
                   World* between_devices = nullptr);

  ExpertRanks experts(int32_t layer) const override { return shards_.experts(layer); }
  void exchange(Stream& stream, Place place, RowsGo go, std::span<const SentRows> out,
                std::span<const ReceivedRows> in) override;
  View gradient_for(int32_t guest, View own) const override;
  void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) override;
  void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) override;
  void gather_norms(View norms) override;
  void give(Stream& stream, std::span<const BlockId> blocks) override;
  void fetch(Stream& stream, std::span<const BlockId> experts, std::span<const View> into) override;

  const Owners& owners() const { return owners_; }

  /// All ranks call these, between steps. `spread`: weights from their owners to all ranks that
  /// have copies. `collect`: weights that only owners have since updates, to rank 0.
  void spread();
  void collect();
  /// All ranks call it at the begin of a step. If weights travel compressed, and `spread` or
  /// `collect` has brought exact ones since the last step: they travel again, so that all ranks
  /// compute with what they would have.
  void repeat_give();
  /// How the weights of experts travelled last, by layer; empty: dense.
  std::vector<WiredStep> wired() const { return wire_.report(); }
  /// What passed between devices and the host since the last call, by steady_link_clock.
  std::vector<BlockCopy> take_copies() { return stage_.take_copies(); }

 private:
  /// Gradients of a block of an expert, and where they are among a guest's.
  struct ExpertGradients {
    BlockId block;
    View own;
    size_t offset;  // bytes
  };
  bool owns(BlockId block) const { return owners_.owner(block) == shards_.rank; }
  bool uses(BlockId block) const { return owners_.uses(block, shards_.rank); }
  /// Whether a rank has no weights of a block but while it uses them.
  bool fetches(BlockId block, int32_t rank) const {
    return is_fetched(table_, owners_, shards_, block, rank);
  }
  std::vector<BlockId> trained_blocks() const;
  /// Of a block: what the shards of this rank, or of each rank of its group, have come to.
  std::vector<PartialSum> sums_of(const OpSet& ops, BlockId block) const;
  void join_guests(const OpSet& ops, Stream& stream) const;
  /// Whether `reduce` joins the sums of an expert for several ranks' rows: no task ends the only
  /// shard.
  bool joins_in_reduce() const { return shards_.count() == 1 && !stage_.is_device(guest_place_); }
  void end_arena(const OpSet& ops, Stream& stream, ShardRange range, int32_t shard, size_t bytes,
                 std::byte* gradients, std::span<std::byte* const> aside) const;
  Place place_of(BlockId block) const { return table_.block(block).place; }
  bool is_at_device(BlockId block) const { return stage_.is_device(place_of(block)); }
  /// Whether gradients and weights of a block pass the host.
  bool passes_host(BlockId block) const { return is_at_device(block) && !shards_.direct; }
  /// Room in the staging memory, from `used` on, which it raises.
  std::byte* room(size_t bytes, size_t& used) const;
  void give_wired(int32_t layer) { wire_.give(table_, *team_, stage_, memory_.staging, layer); }
  View staged_gradient(BlockId block, const View& gradient, size_t& used);
  /// A copy of a tensor that goes from one rank to others.
  struct Move {
    BlockId block;
    int32_t from;
    std::vector<int32_t> to;
    View copy;         // empty: this rank has no part in it
    int64_t elements;  // f32
  };
  /// All ranks call it with moves of the same sizes in the same order.
  void move(std::span<const Move> moves);
  std::vector<View> aside_of(Place place, const View& gradient) const;
  ShardRange range_of_guest(int32_t guest) const;

  const RankShards shards_;
  ParameterTable& table_;
  const Memory memory_;
  RankTeam* const team_;
  const Owners owners_;
  DeviceStage stage_;
  WireExperts wire_;
  bool has_exact_ = false;  // of weights that travel compressed
  const Place guest_place_;
  size_t guest_bytes_ = 0;                // guest_gradient_bytes
  std::vector<ExpertGradients> experts_;  // by address; empty: ranks do not share experts
  struct Channel {
    std::unique_ptr<Communicator> comm;  // of the ranks that share experts
    CommLabel label{-1, 0};              // of its next operation
  };
  /// The next operation of a channel.
  CommLabel next(Channel& channel) const {
    if (channel.label.step != team_->step()) channel.label = {team_->step(), 0};
    return {channel.label.step, channel.label.number++};
  }
  std::array<Channel, kRowsGo> channels_;  // by way, if they are apart
  Channel direct_rows_, direct_all_;       // if messages go directly: of these ranks, and of all
};

}  // namespace hearth
