// The experts of a layer: each product one launch over all of them.
#include <array>

#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"
#include "ops/shapes.h"

namespace hearth::HEARTH_GPU {
namespace {

using Map = LinearView ExpertView::*;
using Gradient = LinearGradient ExpertGradient::*;

// The maps of the experts by kind, and what is common to the passes.
class Experts {
 public:
  Experts(GpuStream& gpu, ConstView x, ConstView offsets, std::span<const ExpertView> experts,
          const View& gate)
      : gpu_(gpu) {
    const auto count = static_cast<int64_t>(experts.size());
    compute_ = experts.empty() ? Compute::f32 : experts[0].gate.compute;
    for (const ExpertView& expert : experts) {
      add(expert.gate, gate.cols, x.cols, gate_);
      add(expert.up, gate.cols, x.cols, up_);
      add(expert.down, x.cols, gate.cols, down_);
    }
    rows_.rows = x.rows;
    rows_.groups = static_cast<int32_t>(count);
    rows_.offsets = offsets.as<int32_t>();
    rows_.tile_count = static_cast<int32_t>(GroupedRows::most_tiles(x.rows, count));
    auto* const tiles = gpu.scratch().take<TilePlace>(rows_.tile_count);
    plan_tiles_on(gpu.handle(), rows_.offsets, rows_.groups, tiles, rows_.tile_count);
    rows_.tiles = tiles;
  }

  Products products() const { return {gpu_, rows_, compute_}; }
  Maps gate() const { return gate_; }
  Maps up() const { return up_; }
  Maps down() const { return down_; }

 private:
  void add(const LinearView& map, int64_t out, int64_t in, std::vector<const LinearView*>& to) {
    HEARTH_CHECK(
        map.compute == compute_ && has_shape(map.weight, out, in) && !map.bias && fits(map),
        "experts: maps");
    to.push_back(&map);
  }

  GpuStream& gpu_;
  GroupedRows rows_;
  Compute compute_ = Compute::f32;
  std::vector<const LinearView*> gate_, up_, down_;
};

// The gradients of the low-rank pairs of one kind of map. `kept` is drop(x) and made when needed.
void low_rank_wgrad(Products& products, Maps maps, const Operand& dy, const Operand& v,
                    const std::function<Operand()>& kept, Gradient kind,
                    std::span<const ExpertGradient> gradients) {
  bool any = false;
  for (const ExpertGradient& g : gradients) any = any || (g.*kind).a || (g.*kind).b;
  if (!any || v.data == nullptr) return;
  const auto of = [&](int g) -> const LinearGradient& {
    return gradients[static_cast<size_t>(g)].*kind;
  };
  const Operand x = kept();
  products.wgrad(v, x, [&](int g) { return of(g).a; });
  products.wgrad(dy, products.low_rank_input(x, maps), [&](int g) { return of(g).b; });
}

void experts_forward(Stream& stream, ConstView x, ConstView offsets,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  if (x.rows == 0 || experts.empty()) return;
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  const Experts all(gpu, x, offsets, experts, gate);
  Products products = all.products();
  const Operand a = products.operand(x);
  const auto product = [&](Maps maps, const View& to) {
    Scratch::Frame inner(gpu.scratch());
    const Operand u =
        has_pair(maps) ? products.low_rank_input(products.dropped(x, maps, a), maps) : Operand();
    products.forward(a, u, maps, to, false);
  };
  product(all.gate(), gate);
  product(all.up(), up);

  SwigluArgs swiglu;
  swiglu.gate = gate.as<float>();
  swiglu.up = up.as<float>();
  swiglu.gate_stride = gate.stride;
  swiglu.up_stride = up.stride;
  swiglu.stored = products.stored();
  swiglu.rows = x.rows;
  swiglu.columns = gate.cols;
  swiglu.groups = products.row_groups();
  const auto hidden = [&](const DropoutRule* dropouts) {
    const Operand h = products.take(gate.cols);
    swiglu.h = const_cast<void*>(h.data);
    swiglu.h_stride = h.stride;
    swiglu.dropouts = dropouts;
    swiglu_rows_on(gpu.handle(), swiglu);
    return h;
  };
  const Operand h = hidden(nullptr);
  const DropoutRule* const dropouts = products.dropouts(all.down());
  const Operand kept = dropouts != nullptr ? hidden(dropouts) : h;
  products.forward(h, products.low_rank_input(kept, all.down()), all.down(), y, false);
}

// With z = dy W_down: the combine weight's gradient is <z, h>, dh is weight * z, and the gradient
// of W_down is dy^T (weight * h).
void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      ConstView offsets, std::span<const ExpertView> experts, View gate, View up,
                      View dx, View drow_weight, std::span<const ExpertGradient> gradients) {
  if (x.rows == 0 || experts.empty()) return;
  GpuStream gpu = gpu_stream(stream);
  Scratch& scratch = gpu.scratch();
  Scratch::Frame frame(scratch);
  const Experts all(gpu, x, offsets, experts, gate);
  Products products = all.products();
  const int64_t width = gate.cols;
  const auto weight_gradient = [&](Gradient kind) {
    return [&gradients, kind](int g) { return (gradients[static_cast<size_t>(g)].*kind).weight; };
  };

  const Operand d_out = products.operand(dy);
  const View z(scratch.take<float>(x.rows * width), DType::f32, x.rows, width);
  const Operand v_down = products.low_rank_output(d_out, all.down());
  const bool drops = has_dropout(all.down());
  products.dgrad(d_out, drops ? Operand() : v_down, all.down(), z, false);
  if (drops) products.add_low_rank_gradient(v_down, all.down(), z);

  const Operand h = products.take(width);
  const Operand h_kept = drops ? products.take(width) : h;
  const Operand d_gate = products.bf16() ? products.take(width) : operand_of(gate);
  const Operand d_up = products.bf16() ? products.take(width) : operand_of(up);
  SwigluGradientArgs hidden;
  hidden.z = z.as<float>();
  hidden.z_stride = z.stride;
  hidden.row_weight = row_weight.as<float>();
  hidden.drow_weight = drow_weight.as<float>();
  hidden.gate = gate.as<float>();
  hidden.up = up.as<float>();
  hidden.gate_stride = gate.stride;
  hidden.up_stride = up.stride;
  hidden.gate_operand = products.bf16() ? const_cast<void*>(d_gate.data) : nullptr;
  hidden.up_operand = products.bf16() ? const_cast<void*>(d_up.data) : nullptr;
  hidden.h = const_cast<void*>(h.data);
  hidden.h_dropped = drops ? const_cast<void*>(h_kept.data) : nullptr;
  hidden.operand_stride = h.stride;
  hidden.stored = products.stored();
  hidden.rows = x.rows;
  hidden.columns = width;
  hidden.groups = products.row_groups();
  hidden.dropouts = drops ? products.dropouts(all.down()) : nullptr;
  swiglu_gradient_rows_on(gpu.handle(), hidden);

  products.dgrad_of_two(d_gate, all.gate(), d_up, all.up(), dx);
  products.wgrad(d_out, h, weight_gradient(&ExpertGradient::down));
  low_rank_wgrad(
      products, all.down(), d_out, v_down, [&] { return h_kept; }, &ExpertGradient::down,
      gradients);
  const Operand a = products.operand(x);
  const auto of_inner = [&](Maps maps, const Operand& d, Gradient kind) {
    Scratch::Frame inner(scratch);
    products.wgrad(d, a, weight_gradient(kind));
    const Operand v = products.low_rank_output(d, maps);
    products.add_low_rank_gradient(v, maps, dx);
    low_rank_wgrad(
        products, maps, d, v, [&] { return products.dropped(x, maps, a); }, kind, gradients);
  };
  of_inner(all.gate(), d_gate, &ExpertGradient::gate);
  of_inner(all.up(), d_up, &ExpertGradient::up);
}

/// z; in bf16 x, dy, h and the gradients of gate and up as operands, in f32 h alone; h again where it
/// is dropped; of pairs drop(x) and four [rows, rank]; a library's workspace.
ScratchNeed experts_scratch(int64_t rows, int64_t experts, int64_t hidden, int64_t width,
                            int64_t rank) {
  const auto tiles = static_cast<size_t>(GroupedRows::most_tiles(rows, experts));
  const size_t pairs = rank == 0 ? 0
                                 : operand_bytes(rows, hidden, sizeof(float)) +
                                       4 * operand_bytes(rows, rank, sizeof(float));
  return {align_up(tiles * sizeof(TilePlace)) + kArenaAlignment +
              2 * operand_bytes(rows, hidden, sizeof(bf16)) +
              operand_bytes(rows, width, sizeof(float)) +
              4 * operand_bytes(rows, width, sizeof(bf16)) + pairs +
              most_scratch_bytes(grouped_libraries(), experts),
          0};
}

}  // namespace

void add_experts(OpTable& ops) {
  ops.experts_forward.add(GpuOps::kName, experts_forward);
  ops.experts_backward.add(GpuOps::kName, experts_backward);
  ops.experts_scratch.add(experts_scratch);
}

}  // namespace hearth::HEARTH_GPU
