// What tasks do with gradients and weights when a step has several logical shards or several ranks.
// Bodies call it; who implements it knows the ranks (runtime/shared_parameters.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/place.h"
#include "base/stream.h"
#include "model/expert_ranks.h"
#include "model/parameter_table.h"
#include "ops/op_set.h"

namespace hearth {

/// A message to or from a rank of the group that shares the experts: contiguous. A view without rows is
/// a message, too.
struct SentRows {
  int32_t to = 0;  // its position in the group
  ConstView rows;
};
struct ReceivedRows {
  int32_t from = 0;
  View rows;
};

/// To the rank that computes them, or back (ExpertRanks::ways_apart).
enum class RowsGo : uint8_t { out, back };
inline constexpr int kRowsGo = 2;

class RankWork {
 public:
  virtual ~RankWork() = default;
  /// The group of ranks that share the experts of a layer, and this one's position in it.
  virtual ExpertRanks experts(int32_t layer) const = 0;
  /// Messages of the group, in memory of `place`: all at the host, or all at devices
  /// (RankShards::direct). All of its ranks call this in the same order, of ways apart for each way and of devices
  /// apart from the host, from a stream that does nothing else, and know the sizes of what they get.
  /// Returns when all have come and gone.
  virtual void exchange(Stream& stream, Place place, RowsGo go, std::span<const SentRows> out,
                        std::span<const ReceivedRows> in) = 0;
  /// Where the rows of another rank of the group add to a gradient of an expert of this rank. `own`:
  /// where this rank's rows do; may be empty.
  virtual View gradient_for(int32_t guest, View own) const = 0;
  /// The gradients at a place have all micro-batches of a shard of this rank, which are counted from
  /// 0: adds them to those of the shards before (comm/shard_sum.h). The last one also joins what the
  /// rows of several ranks have come to.
  virtual void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) = 0;
  /// Gradients of trained blocks, which may be at devices, to their owners. All ranks call these three
  /// in the same order, on the host; if messages go directly, the first and the last at the device.
  virtual void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) = 0;
  /// `norms`: f64, one per trained tensor, of which this rank knows those that it owns. Afterwards all.
  virtual void gather_norms(View norms) = 0;
  /// Weights of trained blocks from their owners, to ranks that keep them.
  virtual void give(Stream& stream, std::span<const BlockId> blocks) = 0;
  /// Weights of a layer's experts from their owners, to ranks that keep none. `into`: where the tensors
  /// go that this rank fetches, in table order (layers/fetched_experts.h). All ranks call it in one order
  /// with the three before.
  virtual void fetch(Stream& stream, std::span<const BlockId> experts,
                     std::span<const View> into) = 0;
};

}  // namespace hearth
