// Ops that are not there yet.
#include <stdexcept>

#include "gpu_kernels/gpu_op_set.h"

namespace hearth::HEARTH_GPU {

void GpuOps::embedding_forward(Stream&, ConstView, ConstView, View) const {
  throw std::logic_error("cuda: no embedding_forward yet");
}
void GpuOps::embedding_backward(Stream&, ConstView, ConstView, int64_t, View) const {
  throw std::logic_error("cuda: no embedding_backward yet");
}
void GpuOps::rmsnorm_forward(Stream&, ConstView, ConstView, double, View, View) const {
  throw std::logic_error("cuda: no rmsnorm_forward yet");
}
void GpuOps::rmsnorm_backward(Stream&, ConstView, ConstView, ConstView, ConstView, View,
                              View) const {
  throw std::logic_error("cuda: no rmsnorm_backward yet");
}
void GpuOps::rope(Stream&, View, int64_t, ConstView, ConstView, ConstView, bool) const {
  throw std::logic_error("cuda: no rope yet");
}
void GpuOps::router_forward(Stream&, ConstView, bool, View, View, View) const {
  throw std::logic_error("cuda: no router_forward yet");
}
void GpuOps::router_backward(Stream&, ConstView, ConstView, ConstView, bool, ConstView,
                             View) const {
  throw std::logic_error("cuda: no router_backward yet");
}
void GpuOps::router_sums(Stream&, ConstView, ConstView, View, View) const {
  throw std::logic_error("cuda: no router_sums yet");
}
void GpuOps::router_z_forward(Stream&, ConstView, View, View) const {
  throw std::logic_error("cuda: no router_z_forward yet");
}
void GpuOps::router_z_backward(Stream&, ConstView, ConstView, double, View) const {
  throw std::logic_error("cuda: no router_z_backward yet");
}
void GpuOps::route(Stream&, ConstView, View, View, View) const {
  throw std::logic_error("cuda: no route yet");
}
void GpuOps::permute(Stream&, ConstView, const RoutingView&, View) const {
  throw std::logic_error("cuda: no permute yet");
}
void GpuOps::combine(Stream&, ConstView, const RoutingView&, ConstView, ConstView, View) const {
  throw std::logic_error("cuda: no combine yet");
}
void GpuOps::to_expert_order(Stream&, ConstView, const RoutingView&, View) const {
  throw std::logic_error("cuda: no to_expert_order yet");
}
void GpuOps::to_token_order(Stream&, ConstView, const RoutingView&, View) const {
  throw std::logic_error("cuda: no to_token_order yet");
}
void GpuOps::sigmoid_gate_forward(Stream&, ConstView, ConstView, View) const {
  throw std::logic_error("cuda: no sigmoid_gate_forward yet");
}
void GpuOps::sigmoid_gate_backward(Stream&, ConstView, ConstView, ConstView, View, View) const {
  throw std::logic_error("cuda: no sigmoid_gate_backward yet");
}
void GpuOps::sum_squares(Stream&, std::span<const ConstView>, View) const {
  throw std::logic_error("cuda: no sum_squares yet");
}
ScratchNeed GpuOps::sum_squares_scratch(int64_t, int64_t) const { return {}; }
ScratchNeed GpuOps::row_scratch(int64_t, int64_t) const { return {}; }

}  // namespace hearth::HEARTH_GPU
