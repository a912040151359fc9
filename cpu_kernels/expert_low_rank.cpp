#include "cpu_kernels/expert_low_rank.h"

#include <algorithm>

#include "cpu_kernels/rounded_rows.h"

namespace hearth {

bool round_all(std::span<const ExpertView> experts) {
  return std::ranges::all_of(experts, [](const ExpertView& expert) {
    return std::ranges::all_of(kExpertMaps, [&](const auto map) {
      const LinearView& w = expert.*map;
      return w.compute == Compute::bf16 && !(w.low_rank && w.low_rank.dropout);
    });
  });
}

ExpertLowRank::ExpertLowRank(HostStream& host, Scratch& scratch,
                             std::span<const ExpertView> experts, int64_t chunk_rows)
    : host_(host), experts_(experts) {
  for (const ExpertView& expert : experts) {
    for (const auto map : kExpertMaps) rank_ = std::max(rank_, (expert.*map).low_rank.rank());
  }
  if (!any()) return;
  for (float*& product : products_) product = scratch.take<float>(chunk_rows * rank_);
}

void ExpertLowRank::make(const ExpertChunks& chunk, std::span<const Product> products) const {
  if (!any()) return;
  const auto blocks = chunk.blocks();
  const int64_t kinds = std::ssize(products);
  host_.pool().run(std::ssize(blocks) * kinds, [&](int64_t i, int worker) {
    const ExpertBlock& block = blocks[static_cast<size_t>(i / kinds)];
    const Product& product = products[static_cast<size_t>(i % kinds)];
    const LinearView& map = map_of(product.map, block.expert);
    if (!map.low_rank) return;
    const BlockRows rows(block, chunk.all());
    const Operand from = product.of_chunk ? product.from.of(block.at) : rows.of(product.from);
    const View to = at(product.map, product.output, block.expert, block.at);
    Scratch& own = host_.worker_scratch(worker);
    if (product.output) {
      low_rank_output(own, from, map.low_rank, map.compute, to);
    } else {
      low_rank_input(own, from, map.low_rank.from_row(block.row, block.segment), map.compute, to);
    }
  });
}

View ExpertLowRank::at(int map, bool output, int64_t expert, Range rows) const {
  float* const all = products_[static_cast<size_t>(2 * map + (output ? 1 : 0))];
  return {all + rows.begin * rank_, DType::f32, rows.count, map_of(map, expert).low_rank.rank(),
          rank_};
}

size_t ExpertLowRank::scratch_bytes(int64_t chunk_rows, int64_t rank) {
  if (rank == 0) return 0;
  return 6 * (sizeof(float) * static_cast<size_t>(chunk_rows * rank) + kArenaAlignment);
}

}  // namespace hearth
