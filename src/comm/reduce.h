// Typed reductions: gradients to the owners of their blocks, and back what updates wrote.
//
// Only these functions add across ranks, always by the tree over logical shards (comm/shard_tree.h).
// Each is one operation of the communicator and returns when it has ended at this rank. All ranks of
// the communicator pass the same blocks in the same order, also blocks that they have nothing of.
// Ranks in `Owners` are those of the communicator. Memory is the host's, or a device's with ops, stream
// and communicator of devices; work that the stream was given before is waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/owners.h"
#include "comm/shard_sum.h"

namespace hearth {

/// The gradient of a tensor of a block, or of any contiguous run of its tensors, as this rank has it.
struct SharedGradient {
  BlockId block = 0;
  DType dtype = DType::f32;  // like `elements` the same on all ranks
  int64_t elements = 0;
  /// One view for each subtree that this rank computed, in order (ShardSum::sums). Contiguous.
  std::vector<View> mine = {};
  /// At the owner: where the sum goes. May be one of `mine`.
  View sum = {};
  /// Whether `mine` are copies, whose content does not matter afterwards.
  bool copied = false;
};

/// Bytes that the owner needs for what others send, for one call with these gradients. The largest
/// of all calls is planned.
size_t staging_bytes(const Owners& owners, int32_t rank, std::span<const SharedGradient> gradients);

/// Sums gradients at the owners of their blocks. Then `mine` is zero, but for `sum`, and for copies: the
/// next step may add to it. A subtree goes over the link to its owner once. Takes the scratch of
/// OpTable::row_scratch. Raises PeerError.
void reduce_to_owners(Communicator& comm, CommLabel label, const OpSet& ops, Stream& stream,
                      const Owners& owners, std::span<const SharedGradient> gradients,
                      Bytes staging);

/// What an update wrote to a block (working copies, else masters): at its owner the source, at the
/// other ranks that compute with it the target, elsewhere empty. Contiguous; several for a block.
struct SharedCopy {
  BlockId block = 0;
  View copy = {};
};

/// Whether a rank that computes with a block keeps weights of it. The same at all ranks; empty: all do.
using KeepsBlock = std::function<bool(BlockId, int32_t rank)>;

/// From each owner to all ranks that compute with the block and keep it, once each. Raises PeerError.
void give_to_users(Communicator& comm, CommLabel label, Stream& stream, const Owners& owners,
                   std::span<const SharedCopy> copies, const KeepsBlock& keeps = {});

/// Sums of squares, f64 [1, tensors], each known to the rank owner_of[tensor]: afterwards to all. The
/// caller adds them in the order of the table. Raises PeerError.
void gather_norms(Communicator& comm, CommLabel label, std::span<const int32_t> owner_of,
                  View norms);

}  // namespace hearth
