// What tasks do with gradients and weights when a step has several logical shards or several ranks.
// Bodies call it; who implements it knows the ranks (runtime/shared_parameters.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/place.h"
#include "base/stream.h"
#include "model/parameter_table.h"
#include "ops/op_set.h"

namespace hearth {

class RankWork {
 public:
  virtual ~RankWork() = default;
  /// The gradients at a place have all micro-batches of a shard of this rank, which are counted from
  /// 0: adds them to those of the shards before (comm/shard_sum.h).
  virtual void end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) = 0;
  /// Gradients of trained blocks to their owners. All ranks call these three in the same order.
  virtual void reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) = 0;
  /// `norms`: f64, one per trained tensor, of which this rank knows those that it owns. Afterwards all.
  virtual void gather_norms(View norms) = 0;
  /// Weights of trained blocks from their owners.
  virtual void give(Stream& stream, std::span<const BlockId> blocks) = 0;
};

}  // namespace hearth
