#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/token_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

void rope(Stream& stream, View x, int64_t heads, ConstView positions, ConstView cosine,
          ConstView sine, bool inverse) {
  RopeArguments a;
  a.x = matrix_of<float>(x);
  a.rows = x.rows;
  a.heads = heads;
  a.half = cosine.cols;
  a.positions = positions.as<int32_t>();
  a.position_count = cosine.rows;
  a.cosine = matrix_of<float>(cosine);
  a.sine = matrix_of<float>(sine);
  a.sign = inverse ? -1.0f : 1.0f;
  rope_on(gpu_stream(stream).handle(), a);
}

void sigmoid_gate_forward(Stream& stream, ConstView logits, ConstView x, View y) {
  GateArguments a;
  a.rows = x.rows;
  a.cols = x.cols;
  a.quads = in_quads({x, y});
  a.logits = logits.as<float>();
  a.x = matrix_of<float>(x);
  a.out = matrix_of<float>(y);
  sigmoid_gate_on(gpu_stream(stream).handle(), a);
}

void sigmoid_gate_backward(Stream& stream, ConstView dy, ConstView logits, ConstView y,
                           View dlogits, View dx) {
  GateArguments a;
  a.rows = y.rows;
  a.cols = y.cols;
  a.quads = in_quads({dy, y, dx});
  a.logits = logits.as<float>();
  a.x = matrix_of<float>(dy);
  a.y = matrix_of<float>(y);
  a.out = matrix_of<float>(dx);
  a.dlogits = dlogits.as<float>();
  sigmoid_gate_gradient_on(gpu_stream(stream).handle(), a);
}

}  // namespace

void add_rope(OpTable& ops) {
  ops.rope.add(GpuOps::kName, rope);
  ops.sigmoid_gate_forward.add(GpuOps::kName, sigmoid_gate_forward);
  ops.sigmoid_gate_backward.add(GpuOps::kName, sigmoid_gate_backward);
}

}  // namespace hearth::HEARTH_GPU
