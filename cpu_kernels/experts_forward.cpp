#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_low_rank.h"
#include "cpu_kernels/rounded_rows.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/tiles.h"

namespace hearth {
namespace {

// A chunk of rows at a time, in two phases: gate, up and h = silu(gate) * up, then down. Where maps
// have a low-rank pair, its product with A is made before each phase.
void experts_forward(Stream& stream, ConstView x, const ExpertRows& all,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  const int64_t width = gate.cols;
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  ExpertChunks chunks(stream.scratch(), all, experts, width, gate.rows);
  const Blocks inner(width), outer(x.cols);
  const int64_t chunk_rows = ExpertChunks::most_rows(gate.rows, width);
  const bool rounded = round_all(experts);
  const ExpertInput input =
      expert_input(host, stream.scratch(), {x, all}, rounded ? chunks.all_count() : 0);
  const View h = rounded ? matrix<bf16>(stream.scratch(), chunk_rows, width)
                         : matrix<float>(stream.scratch(), chunk_rows, width);
  const ExpertLowRank low_rank(host, stream.scratch(), experts, chunk_rows);
  using Product = ExpertLowRank::Product;

  const int workers = host.pool().workers();
  while (chunks.next()) {
    const auto blocks = chunks.blocks();
    const auto expert_of = [&](const ExpertTile& tile) -> const ExpertView& {
      return experts[static_cast<size_t>(tile.block.expert)];
    };
    // The tile that this worker is likely to run next: its weights are on their way meanwhile.
    const auto after = [&](int64_t columns, int64_t i) {
      return ExpertTile(blocks, columns, std::min(i + workers, std::ssize(blocks) * columns - 1));
    };
    // Columns of the tile's rows of `to`: the product with the map, and with its pair.
    const auto make = [&](Scratch& scratch, int map, const ExpertTile& tile, const BlockRows& rows,
                          const Operand& in, Range cols, const View& to, const Operand* coming) {
      Scratch::Frame made(scratch);
      const LinearView& w = expert_of(tile).*kExpertMaps[static_cast<size_t>(map)];
      const View target = rows.target(scratch, to, cols);
      const ConstView u = low_rank.input(map, tile.block.expert, tile.block.at);
      forward_tile(scratch, in, w, cols, target, low_rank_tail(u, w.low_rank, cols), coming);
      rows.put(target, to, cols);
    };
    low_rank.make(chunks, std::array{Product{0, false, input}, Product{1, false, input}});
    host.pool().run(std::ssize(blocks) * inner.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, inner.count(), i), next = after(inner.count(), i);
      const BlockRows rows(tile.block, all);
      const Range cols = block_of(inner, tile.column);
      Scratch& scratch = host.worker_scratch(worker);
      const Operand in = rows.of(input);
      const Operand second = forward_weight(expert_of(tile).up, cols);
      const Operand coming = forward_weight(expert_of(next).gate, block_of(inner, next.column));
      make(scratch, 0, tile, rows, in, cols, gate, &second);
      make(scratch, 1, tile, rows, in, cols, up, &coming);
      Scratch::Frame frame_of_tile(scratch);
      float* const unrounded = rounded ? scratch.take<float>(cols.count) : nullptr;
      for (int64_t r = 0; r < rows.count(); ++r) {
        const int64_t in_chunk = tile.block.at.begin + r;
        float* const to = rounded ? unrounded : h.row<float>(in_chunk) + cols.begin;
        swiglu(gate.row<float>(rows[r]) + cols.begin, up.row<float>(rows[r]) + cols.begin, to,
               cols.count);
        if (rounded) round_row(to, h.row<bf16>(in_chunk) + cols.begin, cols.count);
      }
    });
    low_rank.make(chunks, std::array{Product{2, false, h.slice(0, chunks.count()), true}});
    host.pool().run(std::ssize(blocks) * outer.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, outer.count(), i), next = after(outer.count(), i);
      const Operand coming = forward_weight(expert_of(next).down, block_of(outer, next.column));
      make(host.worker_scratch(worker), 2, tile, BlockRows(tile.block, all),
           h.slice(tile.block.at.begin, tile.block.at.count), block_of(outer, tile.column), y,
           &coming);
    });
  }
}

}  // namespace

void cpu::add_experts_forward(OpTable& ops) {
  ops.experts_forward.add(CpuOps::kName, experts_forward);
}

}  // namespace hearth
