#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/router_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

/// Values of choices by token [T, k] and by expert [1, R]. A kernel writes one of them and only reads
/// the other.
OrderArguments orders_of(const RoutingView& routing, const ConstView& by_token,
                         const ConstView& by_expert) {
  OrderArguments a;
  a.rows = by_expert.cols;
  a.choices = static_cast<int>(by_token.cols);
  a.source = routing.source.as<int32_t>();
  a.values = {const_cast<float*>(by_token.as<float>()), by_token.stride};
  a.rows_data = const_cast<float*>(by_expert.as<float>());
  return a;
}

void route(Stream& stream, ConstView choice, ConstView position, View offsets, View source,
           View row_of) {
  const int64_t rows = choice.size(), experts = offsets.cols - 1;
  HEARTH_CHECK(experts > 0, "route: experts");
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  constexpr int64_t kLanes = 32, kSmallest = 4 * kLanes;
  RouteArguments a;
  a.rows = rows;
  a.experts = static_cast<int>(experts);
  a.choices = static_cast<int>(choice.cols);
  const int64_t even = (rows + kRouteChunks - 1) / kRouteChunks;
  a.chunk = even > kSmallest ? (even + kLanes - 1) / kLanes * kLanes : kSmallest;
  a.chunks = static_cast<int>((rows + a.chunk - 1) / a.chunk);
  a.choice = matrix_of<int32_t>(choice);
  a.position = position ? position.as<int32_t>() : nullptr;
  a.places = gpu.scratch().take<int32_t>(experts * a.chunks);
  a.offsets = offsets.as<int32_t>();
  a.source = source.as<int32_t>();
  a.row_of = matrix_of<int32_t>(row_of);
  route_on(gpu.handle(), a);
}

void permute(Stream& stream, ConstView x, ConstView source, ConstView part, View rows) {
  if (rows.rows == 0) return;
  MoveArguments a;
  a.rows = rows.rows;
  a.cols = rows.cols;
  a.quads = in_quads({x, rows});
  a.choices = static_cast<int>(rows.rows / x.rows);
  a.source = source.as<int32_t>();
  if (part) {
    a.first = part.as<int32_t>();
    a.last = a.first + part.cols - 1;
  }
  a.from = matrix_of<float>(x);
  a.to = matrix_of<float>(rows);
  permute_on(gpu_stream(stream).handle(), a);
}

void combine(Stream& stream, ConstView rows, const RoutingView& routing, ConstView weight,
             ConstView base, View out) {
  const int64_t k = routing.row_of.cols;
  MoveArguments a;
  a.rows = out.rows;
  a.cols = out.cols;
  a.quads = in_quads({rows, base, out});
  a.choices = static_cast<int>(k);
  a.row_of = matrix_of<int32_t>(routing.row_of);
  if (routing.offsets) {
    a.first = routing.offsets.as<int32_t>();
    a.last = a.first + routing.offsets.cols - 1;
  }
  a.from = matrix_of<float>(rows);
  a.weight = matrix_of<float>(weight);
  a.base = matrix_of<float>(base);
  a.to = matrix_of<float>(out);
  combine_on(gpu_stream(stream).handle(), a);
}

void to_expert_order(Stream& stream, ConstView values, const RoutingView& routing, View rows) {
  to_expert_order_on(gpu_stream(stream).handle(), orders_of(routing, values, rows));
}

void to_token_order(Stream& stream, ConstView rows, const RoutingView& routing, View values) {
  to_token_order_on(gpu_stream(stream).handle(), orders_of(routing, values, rows));
}

}  // namespace

void add_routing(OpTable& ops) {
  ops.route.add(GpuOps::kName, route);
  ops.permute.add(GpuOps::kName, permute);
  ops.combine.add(GpuOps::kName, combine);
  ops.to_expert_order.add(GpuOps::kName, to_expert_order);
  ops.to_token_order.add(GpuOps::kName, to_token_order);
}

}  // namespace hearth::HEARTH_GPU
