#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_low_rank.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/tiles.h"

namespace hearth {
namespace {

// A chunk of rows at a time, in two phases: gate, up and h = silu(gate) * up, then down. Where maps
// have a low-rank pair, its product with A is made before each phase.
void experts_forward(Stream& stream, ConstView x, const ExpertRows& all,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  const int64_t width = gate.cols;
  const Operand input = expert_operand(x, all, gate.rows);
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  ExpertChunks chunks(stream.scratch(), all, experts, width, gate.rows);
  const Blocks inner(width), outer(x.cols);
  const int64_t chunk_rows = ExpertChunks::most_rows(gate.rows, width);
  float* const h = stream.scratch().take<float>(chunk_rows * width);
  const ExpertLowRank low_rank(host, stream.scratch(), experts, chunk_rows);
  using Product = ExpertLowRank::Product;

  const int workers = host.pool().workers();
  while (chunks.next()) {
    const auto blocks = chunks.blocks();
    const auto h_rows = [&](Range rows) {
      return View(h + (rows.begin - chunks.rows().begin) * width, DType::f32, rows.count, width);
    };
    const auto expert_of = [&](const ExpertTile& tile) -> const ExpertView& {
      return experts[static_cast<size_t>(tile.block.expert)];
    };
    // The tile that this worker is likely to run next: its weights are on their way meanwhile.
    const auto after = [&](int64_t columns, int64_t i) {
      return ExpertTile(blocks, columns, std::min(i + workers, std::ssize(blocks) * columns - 1));
    };
    const auto add_pair = [&](Scratch& scratch, int map, const ExpertTile& tile, Range cols,
                              const View& to) {
      const int64_t e = tile.block.expert;
      const LinearView& w = expert_of(tile).*kExpertMaps[static_cast<size_t>(map)];
      if (!w.low_rank) return;
      add_low_rank(scratch, low_rank.input(chunks, map, e, tile.block.rows), w.low_rank, w.compute,
                   cols, to);
    };
    low_rank.make(chunks, std::array{Product{0, false, input}, Product{1, false, input}});
    host.pool().run(std::ssize(blocks) * inner.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, inner.count(), i), next = after(inner.count(), i);
      const Range rows = tile.block.rows, cols = block_of(inner, tile.column);
      const ExpertView& expert = expert_of(tile);
      Scratch& scratch = host.worker_scratch(worker);
      const Operand in = rows_of(input, rows);
      const Operand second = forward_weight(expert.up, cols);
      const Operand coming = forward_weight(expert_of(next).gate, block_of(inner, next.column));
      forward_tile(scratch, in, expert.gate, cols, gate.slice(rows.begin, rows.count), &second);
      forward_tile(scratch, in, expert.up, cols, up.slice(rows.begin, rows.count), &coming);
      add_pair(scratch, 0, tile, cols, gate.slice(rows.begin, rows.count));
      add_pair(scratch, 1, tile, cols, up.slice(rows.begin, rows.count));
      const View out = h_rows(rows);
      for (int64_t r = 0; r < rows.count; ++r) {
        swiglu(gate.row<float>(rows.begin + r) + cols.begin,
               up.row<float>(rows.begin + r) + cols.begin, out.row<float>(r) + cols.begin,
               cols.count);
      }
    });
    const View h_chunk = h_rows(chunks.rows());
    low_rank.make(chunks, std::array{Product{2, false, h_chunk, chunks.rows().begin}});
    host.pool().run(std::ssize(blocks) * outer.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, outer.count(), i), next = after(outer.count(), i);
      const Range rows = tile.block.rows;
      const Operand coming = forward_weight(expert_of(next).down, block_of(outer, next.column));
      const Range cols = block_of(outer, tile.column);
      Scratch& scratch = host.worker_scratch(worker);
      forward_tile(scratch, h_rows(rows), expert_of(tile).down, cols,
                   y.slice(rows.begin, rows.count), &coming);
      add_pair(scratch, 2, tile, cols, y.slice(rows.begin, rows.count));
    });
  }
}

}  // namespace

void cpu::add_experts_forward(OpTable& ops) {
  ops.experts_forward.add(CpuOps::kName, experts_forward);
}

}  // namespace hearth
