#include <algorithm>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/expert_rows.h"
#include "cpu_kernels/swiglu.h"
#include "cpu_kernels/tiles.h"

namespace hearth {

// A chunk of rows at a time, in two phases: gate, up and h = silu(gate) * up, then down.
void CpuOps::experts_forward(Stream& stream, ConstView x, ConstView offsets,
                             std::span<const ExpertView> experts, View gate, View up,
                             View y) const {
  const int64_t width = gate.cols;
  HEARTH_CHECK(gate.rows == x.rows && has_shape(up, x.rows, width) && has_shape(y, x.rows, x.cols),
               "experts_forward: shapes");
  HostStream& host = host_stream(stream);
  Scratch::Frame frame(stream.scratch());
  ExpertChunks chunks(stream.scratch(), offsets, static_cast<int64_t>(experts.size()), width);
  const Blocks inner(width), outer(x.cols);
  float* const h = stream.scratch().take<float>(ExpertChunks::most_rows(x.rows, width) * width);

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
    host.pool().run(std::ssize(blocks) * inner.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, inner.count(), i), next = after(inner.count(), i);
      const Range rows = tile.block.rows, cols = block_of(inner, tile.column);
      const ExpertView& expert = expert_of(tile);
      Scratch& scratch = host.worker_scratch(worker);
      const ConstView in = x.slice(rows.begin, rows.count);
      const Operand second = forward_weight(expert.up, cols);
      const Operand coming = forward_weight(expert_of(next).gate, block_of(inner, next.column));
      forward_tile(scratch, in, expert.gate, cols, gate.slice(rows.begin, rows.count), &second);
      forward_tile(scratch, in, expert.up, cols, up.slice(rows.begin, rows.count), &coming);
      const View out = h_rows(rows);
      for (int64_t r = 0; r < rows.count; ++r) {
        swiglu(gate.row<float>(rows.begin + r) + cols.begin,
               up.row<float>(rows.begin + r) + cols.begin, out.row<float>(r) + cols.begin,
               cols.count);
      }
    });
    host.pool().run(std::ssize(blocks) * outer.count(), [&](int64_t i, int worker) {
      const ExpertTile tile(blocks, outer.count(), i), next = after(outer.count(), i);
      const Range rows = tile.block.rows;
      const Operand coming = forward_weight(expert_of(next).down, block_of(outer, next.column));
      forward_tile(host.worker_scratch(worker), h_rows(rows), expert_of(tile).down,
                   block_of(outer, tile.column), y.slice(rows.begin, rows.count), &coming);
    });
  }
}

}  // namespace hearth
