// The experts of a layer: each product one launch over all of them. Segments that lie apart are
// computed one after the other.
#include <array>
#include <deque>

#include "gpu_kernels/libraries/grouped_libraries.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"
#include "ops/shapes.h"

namespace hearth::HEARTH_GPU {
namespace {

using Map = LinearView ExpertView::*;
using Gradient = LinearGradient ExpertGradient::*;

// The maps of the experts by kind, and what is common to the passes. Each segment of an expert is a
// group of the products.
class Experts {
 public:
  Experts(GpuStream& gpu, const ExpertRows& rows, std::span<const ExpertView> experts,
          int64_t hidden, const ConstView& gate)
      : gpu_(gpu), segments_(rows.segments) {
    const int64_t count = std::ssize(experts) * segments_;
    compute_ = experts.empty() ? Compute::f32 : experts[0].gate.compute;
    for (const ExpertView& expert : experts) {
      add(expert.gate, gate.cols, hidden, gate_);
      add(expert.up, gate.cols, hidden, up_);
      add(expert.down, hidden, gate.cols, down_);
    }
    rows_.rows = gate.rows;
    rows_.groups = static_cast<int32_t>(count);
    rows_.segments = static_cast<int32_t>(segments_);
    rows_.offsets = rows.offsets.as<int32_t>();
    rows_.tile_count = static_cast<int32_t>(GroupedRows::most_tiles(gate.rows, count));
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
    for (int64_t segment = 0; segment < segments_; ++segment) {
      if (segments_ == 1 && map.low_rank.dropout.segment_keys.empty()) {
        to.push_back(&map);
        continue;
      }
      LinearView& copy = copies_.emplace_back(map);
      copy.low_rank = map.low_rank.from_row(0, segment);
      to.push_back(&copy);
    }
  }

  GpuStream& gpu_;
  int64_t segments_;
  std::deque<LinearView> copies_;  // with the segments' dropout
  GroupedRows rows_;
  Compute compute_ = Compute::f32;
  std::vector<const LinearView*> gate_, up_, down_;
};

/// The experts with the dropout of one segment.
std::vector<ExpertView> of_segment(std::span<const ExpertView> experts, int64_t segment,
                                   int64_t first_row) {
  std::vector<ExpertView> all(experts.begin(), experts.end());
  for (ExpertView& expert : all) {
    for (LinearView* map : {&expert.gate, &expert.up, &expert.down}) {
      map->low_rank = map->low_rank.from_row(first_row, segment);
      map->low_rank.dropout.segment_keys = {};
    }
  }
  return all;
}

/// Of x or dy, the segment's rows, or all that its index may read.
ConstView input_rows(const ConstView& x, const ExpertRows& rows, int64_t first, int64_t count) {
  if (!rows.source) return x.slice(first, count);
  const int64_t begin = first / rows.stride * rows.input_stride;
  return x.slice(begin, x.rows - begin);
}

/// f(rows, experts, first row, row count) of each segment that lies apart.
template <class F>
void for_segments(const ExpertRows& rows, std::span<const ExpertView> experts, int64_t all_rows,
                  const F& f) {
  for (int64_t s = 0; s < rows.segments; ++s) {
    const int64_t first = s * rows.stride;
    const int64_t count = std::min(rows.stride, all_rows - first);
    f(rows.segment(s, count), of_segment(experts, s, first), first, count);
  }
}

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

void experts_forward(Stream& stream, ConstView x, const ExpertRows& rows,
                     std::span<const ExpertView> experts, View gate, View up, View y) {
  if (gate.rows == 0 || experts.empty()) return;
  if (rows.stride > 0) {
    return for_segments(
        rows, experts, gate.rows,
        [&](const ExpertRows& of, std::span<const ExpertView> maps, int64_t first, int64_t count) {
          experts_forward(stream, input_rows(x, rows, first, count), of, maps,
                          gate.slice(first, count), up.slice(first, count), y.slice(first, count));
        });
  }
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  const Experts all(gpu, rows, experts, x.cols, gate);
  Products products = all.products();
  const Activations input(x, rows);
  const Operand a = products.operand(input);
  const auto product = [&](Maps maps, const View& to) {
    Scratch::Frame inner(gpu.scratch());
    const Operand u = has_pair(maps)
                          ? products.low_rank_input(products.dropped(input, maps, a), maps)
                          : Operand();
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
  swiglu.rows = gate.rows;
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

// The views of a backward pass, or of one of its halves.
struct BackwardViews {
  ConstView dy, row_weight = {};
  ConstView x = {};  // weight half
  View gate, up;     // the data half makes them their gradients
  View h = {};       // between the halves; empty: within the op
  View dx = {}, drow_weight = {};
  std::span<const ExpertGradient> gradients = {};  // weight half
};

/// Those of one segment.
BackwardViews rows_of(const BackwardViews& of, const ExpertRows& rows, int64_t first,
                      int64_t count) {
  BackwardViews part = of;
  part.dy = input_rows(of.dy, rows, first, count);
  part.gate = of.gate.slice(first, count);
  part.up = of.up.slice(first, count);
  if (of.x) part.x = input_rows(of.x, rows, first, count);
  if (of.h) part.h = of.h.slice(first, count);
  if (of.dx) part.dx = of.dx.slice(first, count);
  const auto numbers = [&](const ConstView& v) {  // [1, rows]
    return View(const_cast<float*>(v.as<float>()) + first, DType::f32, 1, count);
  };
  if (of.row_weight) part.row_weight = numbers(of.row_weight);
  if (of.drow_weight) part.drow_weight = numbers(of.drow_weight);
  return part;
}

enum class Half { data, weights, both };

// With z = dy W_down: the combine weight's gradient is <z, h>, dh is weight * z, and the gradient
// of W_down is dy^T (weight * h).
void run_backward(Half half, Stream& stream, const ExpertRows& rows,
                  std::span<const ExpertView> experts, const BackwardViews& of) {
  if (of.gate.rows == 0 || experts.empty()) return;
  if (rows.stride > 0) {
    return for_segments(rows, experts, of.gate.rows,
                        [&](const ExpertRows& some, std::span<const ExpertView> maps, int64_t first,
                            int64_t count) {
                          run_backward(half, stream, some, maps, rows_of(of, rows, first, count));
                        });
  }
  const bool data = half != Half::weights, weights = half != Half::data;
  GpuStream gpu = gpu_stream(stream);
  Scratch& scratch = gpu.scratch();
  Scratch::Frame frame(scratch);
  const Experts all(gpu, rows, experts, of.dy.cols, of.gate);
  Products products = all.products();
  const int64_t width = of.gate.cols;
  const auto weight_gradient = [&](Gradient kind) {
    return [&of, kind](int g) { return (of.gradients[static_cast<size_t>(g)].*kind).weight; };
  };

  const Operand d_out = products.operand(Activations(of.dy, rows));
  const Operand v_down = products.low_rank_output(d_out, all.down());
  const bool drops = has_dropout(all.down());
  Operand h, h_kept, d_gate, d_up;
  if (data) {
    const View z(scratch.take<float>(of.gate.rows * width), DType::f32, of.gate.rows, width);
    products.dgrad(d_out, drops ? Operand() : v_down, all.down(), z, false);
    if (drops) products.add_low_rank_gradient(v_down, all.down(), z);

    h = of.h ? operand_of(of.h) : products.take(width);
    h_kept = drops && weights ? products.take(width) : h;
    d_gate = products.bf16() ? products.take(width) : operand_of(of.gate);
    d_up = products.bf16() ? products.take(width) : operand_of(of.up);
    SwigluGradientArgs hidden;
    hidden.z = z.as<float>();
    hidden.z_stride = z.stride;
    hidden.row_weight = of.row_weight.as<float>();
    hidden.drow_weight = of.drow_weight.as<float>();
    hidden.gate = of.gate.as<float>();
    hidden.up = of.up.as<float>();
    hidden.gate_stride = of.gate.stride;
    hidden.up_stride = of.up.stride;
    hidden.gate_operand = products.bf16() ? const_cast<void*>(d_gate.data) : nullptr;
    hidden.up_operand = products.bf16() ? const_cast<void*>(d_up.data) : nullptr;
    hidden.h = const_cast<void*>(h.data);
    hidden.h_stride = h.stride;
    hidden.h_stored = h.stored;
    hidden.h_dropped = drops && weights ? const_cast<void*>(h_kept.data) : nullptr;
    hidden.operand_stride = products.bf16() ? d_gate.stride : width;
    hidden.stored = products.stored();
    hidden.rows = of.gate.rows;
    hidden.columns = width;
    hidden.groups = products.row_groups();
    hidden.dropouts = drops && weights ? products.dropouts(all.down()) : nullptr;
    swiglu_gradient_rows_on(gpu.handle(), hidden);
    products.dgrad_of_two(d_gate, all.gate(), d_up, all.up(), of.dx);
  } else {
    d_gate = products.operand(of.gate);
    d_up = products.operand(of.up);
    h = products.operand(of.h);
    h_kept = products.dropped(of.h, all.down(), h);
  }
  if (weights) {
    products.wgrad(d_out, h, weight_gradient(&ExpertGradient::down));
    low_rank_wgrad(
        products, all.down(), d_out, v_down, [&] { return h_kept; }, &ExpertGradient::down,
        of.gradients);
  }
  // dy is not read again: x may take its place.
  const Activations input(of.x, rows);
  const Operand a = weights ? products.operand(input, rows.source ? d_out : Operand()) : Operand();
  const auto of_inner = [&](Maps maps, const Operand& d, Gradient kind) {
    Scratch::Frame inner(scratch);
    if (weights) products.wgrad(d, a, weight_gradient(kind));
    const Operand v = products.low_rank_output(d, maps);
    if (data) products.add_low_rank_gradient(v, maps, of.dx);
    if (weights) {
      low_rank_wgrad(
          products, maps, d, v, [&] { return products.dropped(input, maps, a); }, kind,
          of.gradients);
    }
  };
  of_inner(all.gate(), d_gate, &ExpertGradient::gate);
  of_inner(all.up(), d_up, &ExpertGradient::up);
}

void experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                      const ExpertRows& rows, std::span<const ExpertView> experts, View gate,
                      View up, View dx, View drow_weight,
                      std::span<const ExpertGradient> gradients) {
  run_backward(Half::both, stream, rows, experts,
               {.dy = dy,
                .row_weight = row_weight,
                .x = x,
                .gate = gate,
                .up = up,
                .dx = dx,
                .drow_weight = drow_weight,
                .gradients = gradients});
}

void experts_dgrad(Stream& stream, ConstView dy, ConstView row_weight, const ExpertRows& rows,
                   std::span<const ExpertView> experts, View gate, View up, View h, View dx,
                   View drow_weight) {
  run_backward(Half::data, stream, rows, experts,
               {.dy = dy,
                .row_weight = row_weight,
                .gate = gate,
                .up = up,
                .h = h,
                .dx = dx,
                .drow_weight = drow_weight});
}

// The weight half writes none of the views.
View unchanged(const ConstView& v) {
  return {const_cast<void*>(v.data), v.dtype, v.rows, v.cols, v.stride};
}

void experts_wgrad(Stream& stream, ConstView dy, ConstView x, const ExpertRows& rows,
                   std::span<const ExpertView> experts, ConstView dgate, ConstView dup, ConstView h,
                   std::span<const ExpertGradient> gradients) {
  run_backward(Half::weights, stream, rows, experts,
               {.dy = dy,
                .x = x,
                .gate = unchanged(dgate),
                .up = unchanged(dup),
                .h = unchanged(h),
                .gradients = gradients});
}

}  // namespace

void add_experts(OpTable& ops) {
  ops.experts_forward.add(GpuOps::kName, experts_forward);
  ops.experts_backward.add(GpuOps::kName, experts_backward);
  ops.experts_dgrad.add(GpuOps::kName, experts_dgrad);
  ops.experts_wgrad.add(GpuOps::kName, experts_wgrad);
}

}  // namespace hearth::HEARTH_GPU
