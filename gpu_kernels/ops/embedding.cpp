#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/token_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

void embedding_forward(Stream& stream, ConstView ids, ConstView table, View out) {
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

void embedding_backward(Stream& stream, ConstView ids, ConstView dout, int64_t padding,
                        View table_gradient) {
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

void embedding_noise(Stream& stream, const Noise& noise, ConstView offsets, View x) {
  NoiseArguments a;
  a.rows = x.rows;
  a.cols = x.cols;
  a.offsets = offsets.as<int32_t>();
  a.documents = offsets.cols - 1;
  a.key = noise.key;
  a.alpha = noise.alpha;
  a.quads = in_quads({x});
  a.x = matrix_of<float>(x);
  embedding_noise_on(gpu_stream(stream).handle(), a);
}

}  // namespace

void add_embedding(OpTable& ops) {
  ops.embedding_forward.add(GpuOps::kName, embedding_forward);
  ops.embedding_backward.add(GpuOps::kName, embedding_backward);
  ops.embedding_noise.add(GpuOps::kName, embedding_noise);
}

}  // namespace hearth::HEARTH_GPU
