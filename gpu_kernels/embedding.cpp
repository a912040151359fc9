#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/products.h"
#include "gpu_kernels/token_rows.h"

namespace hearth::HEARTH_GPU {

void GpuOps::embedding_forward(Stream& stream, ConstView ids, ConstView table, View out) const {
  HEARTH_CHECK(is_shaped(ids, 1, out.rows) && table.cols == out.cols, "embedding_forward: shapes");
  EmbeddingArguments a;
  a.ids = ids.as<int32_t>();
  a.rows = out.rows;
  a.cols = out.cols;
  a.vocabulary = table.rows;
  a.quads = in_quads({table, out});
  a.table = operand_of(table);
  a.out = matrix_of<float>(out);
  embedding_on(gpu_stream(stream).handle(), a);
}

void GpuOps::embedding_backward(Stream& stream, ConstView ids, ConstView dout, int64_t padding,
                                View table_gradient) const {
  HEARTH_CHECK(is_shaped(ids, 1, dout.rows) && table_gradient.cols == dout.cols,
               "embedding_backward: shapes");
  EmbeddingArguments a;
  a.ids = ids.as<int32_t>();
  a.rows = dout.rows;
  a.cols = dout.cols;
  a.vocabulary = table_gradient.rows;
  a.padding = padding;
  a.quads = in_quads({dout, table_gradient});
  a.dout = matrix_of<float>(dout);
  a.table_gradient = matrix_of<float>(table_gradient);
  embedding_gradient_on(gpu_stream(stream).handle(), a);
}

}  // namespace hearth::HEARTH_GPU
