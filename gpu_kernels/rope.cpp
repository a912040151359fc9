#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/token_rows.h"

namespace hearth::HEARTH_GPU {

void GpuOps::rope(Stream& stream, View x, int64_t heads, ConstView positions, ConstView cosine,
                  ConstView sine, bool inverse) const {
  HEARTH_CHECK(x.cols == heads * 2 * cosine.cols && is_shaped(positions, 1, x.rows) &&
                   same_shape(sine, cosine),
               "rope: shapes");
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

void GpuOps::sigmoid_gate_forward(Stream& stream, ConstView logits, ConstView x, View y) const {
  HEARTH_CHECK(is_shaped(logits, 1, x.rows) && same_shape(y, x), "sigmoid_gate_forward: shapes");
  GateArguments a;
  a.rows = x.rows;
  a.cols = x.cols;
  a.quads = in_quads({x, y});
  a.logits = logits.as<float>();
  a.x = matrix_of<float>(x);
  a.out = matrix_of<float>(y);
  sigmoid_gate_on(gpu_stream(stream).handle(), a);
}

void GpuOps::sigmoid_gate_backward(Stream& stream, ConstView dy, ConstView logits, ConstView y,
                                   View dlogits, View dx) const {
  HEARTH_CHECK(same_shape(dy, y) && is_shaped(logits, 1, y.rows) && is_shaped(dlogits, 1, y.rows) &&
                   same_shape(dx, y),
               "sigmoid_gate_backward: shapes");
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

}  // namespace hearth::HEARTH_GPU
