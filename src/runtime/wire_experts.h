// Weights of trained experts on their way from owners to the other ranks of their domain, compressed
// (--wire; comm/expert_wire.h, comm/residual_frame.h).
//
// After the updates of a layer, all ranks together, layer by layer:
//
//   sum       each rank adds the experts that it owns, in fixed point, and sends each rank one of N
//             pieces of the sum                                            (N - 1) / N x 4 bytes
//   mean      each rank divides its piece, and sends it to all             (N - 1) / N x b bytes
//   choose    owners encode their experts, and tell all which ratio each has, and its error
//   frames    go from owners to the other ranks that compute with the expert, which decode them
//
// Bytes are per element of one expert, with b of the type that products read. So the shared expert is
// that of the weights of this step: HybridEP also brings it up to date in each step. All of it follows
// from the masters, so a resume repeats it.
//
// The master stays with the owner, exact. What a receiver decodes goes where products read: to its
// working copy, or to its master if that is what products read. With --wire-consistent the owner decodes
// its own frame to its working copy, which then exists in f32, too (CopyPolicy::wired). Gradients are
// taken at what ranks compute with, and applied to the master.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "comm/owners.h"
#include "comm/rank_team.h"
#include "comm/residual_frame.h"
#include "model/parameter_table.h"
#include "runtime/device_stage.h"

namespace hearth {

class WireExperts {
 public:
  /// Of the trained tensors of a table, which need not be bound. Nothing travels here unless the run
  /// compresses and several ranks have an expert, or owners decode.
  WireExperts(const RankShards& shards, const ParameterTable& table, const Owners& owners);

  /// Whether the weights of a block travel here.
  bool has(BlockId block) const { return any() && has_[static_cast<size_t>(block)]; }
  /// Whether those of any do.
  bool any() const { return !layers_.empty(); }
  std::vector<int32_t> layers() const;
  /// Host memory that `give` needs for a layer. `hosts`: places from there on are devices.
  size_t staging_bytes(const ParameterTable& table, int32_t layer, int32_t hosts) const;
  /// After the updates of a layer's experts, with the table, now bound. All ranks call it for the same
  /// layers in the same order. Returns when all has come. Raises PeerError; device error if a frame is not
  /// what it should be.
  void give(ParameterTable& table, RankTeam& team, DeviceStage& stage, Bytes staging,
            int32_t layer);
  /// Of the last `give` of each layer, the same on all ranks. Empty: none.
  std::vector<WiredStep> report() const;

 private:
  struct WiredTensor {
    TensorId id = 0;
    int64_t offset = 0, elements = 0;  // in the shared expert
  };
  struct Expert {
    BlockId block = 0;
    int32_t number = 0, owner = 0;
    std::vector<int32_t> receivers;  // ranks that compute with it, but its owner
    std::vector<WiredTensor> tensors;
    std::vector<int64_t> sizes;  // of the tensors
  };
  /// Elements of the shared expert that are the mean of a matrix of so many experts.
  struct Piece {
    Slot slot = Slot::gate;
    int64_t offset = 0, elements = 0, experts = 0;
  };
  struct Layer {
    int64_t elements = 0;  // of the shared expert
    std::vector<Piece> pieces;
    std::vector<Expert> experts;
    std::vector<bool> owns;  // by rank: whether it owns any
    std::optional<WiredStep> last = {};
  };
  class Work;

  void add_expert(const ParameterTable& table, const Owners& owners, BlockId block);
  bool owns(const Expert& expert) const { return expert.owner == shards_.rank; }
  bool receives(const Expert& expert) const;
  /// Whether anybody decodes its frames.
  bool has_frame(const Expert& expert) const;
  size_t most_bytes(const Expert& expert) const;  // of a frame
  /// The piece of the shared expert that a rank sums: elements [begin, end).
  std::pair<int64_t, int64_t> piece_of(const Layer& layer, int32_t rank) const {
    return {layer.elements * rank / shards_.ranks, layer.elements * (rank + 1) / shards_.ranks};
  }

  const RankShards shards_;
  std::map<int32_t, Layer> layers_;
  std::vector<bool> has_;  // by block
  FrameEncoder encoder_;
};

}  // namespace hearth
