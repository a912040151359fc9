// A step's reductions as ranks run them, on threads or processes: gradients of shards to owners,
// what they write back to users, and norms. Throws where a bit is not that of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reduce.h"
#include "comm/world.h"

namespace hearth::test {

struct ReduceResult {
  std::vector<std::vector<double>> sums;  // by tensor
  bool depends_on_order = false;          // adding shards one after the other gives other bits
};

/// What a run of one rank with these shards gets.
ReduceResult reduced_on_one_rank(const OpSet& ops, DType dtype, int32_t shards);

/// Bytes that a rank must send at the least, with V a power of two.
struct ReduceTraffic {
  int64_t least_bytes = 0;
};

/// `domains`: how ranks share the experts; of one rank: every rank computes all. With `wrong_owner` this
/// rank takes another rank for the owner of a block.
ReduceTraffic run_reduction(World& world, const OpSet& ops, DType dtype, int32_t shards,
                            const ExpertDomains& domains, const ReduceResult& expected,
                            bool wrong_owner = false);

}  // namespace hearth::test
