#include <algorithm>
#include <cmath>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/packing.h"
#include "cpu_kernels/tiles.h"

namespace hearth {
namespace {

void embedding_forward(Stream& stream, ConstView ids, ConstView table, View out) {
  for_blocks(host_stream(stream), out.rows, row_block(out.cols),
             [&](int64_t begin, int64_t end, int) {
               for (int64_t t = begin; t < end; ++t) {
                 const int64_t id = ids.as<int32_t>()[t];
                 HEARTH_CHECK(id >= 0 && id < table.rows, "embedding_forward: token id");
                 load_row(table.dtype, table.slice(id, 1).data, false, out.row<float>(t), out.cols);
               }
             });
}

// A tile owns columns of the whole table, so that each of its elements adds up in token order.
void embedding_backward(Stream& stream, ConstView ids, ConstView dout, int64_t padding,
                        View table_gradient) {
  constexpr int64_t kColumns = 64;
  for_blocks(host_stream(stream), dout.cols, kColumns, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = 0; t < dout.rows; ++t) {
      const int64_t id = ids.as<int32_t>()[t];
      HEARTH_CHECK(id >= 0 && id < table_gradient.rows, "embedding_backward: token id");
      if (id == padding) continue;
      const float* from = dout.row<float>(t);
      float* to = table_gradient.row<float>(id);
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

void embedding_noise(Stream& stream, const Noise& noise, ConstView offsets, View x) {
  const auto* first = offsets.as<int32_t>();
  const auto* last = first + offsets.cols - 1;  // the end of the last document
  for_blocks(host_stream(stream), *last, row_block(x.cols), [&](int64_t begin, int64_t end, int) {
    const int32_t* next = std::upper_bound(first, last, begin);  // document after the row's
    for (int64_t t = begin; t < end; ++t) {
      while (*next <= t) ++next;
      const double tokens = *next - *(next - 1);
      const double scale = noise.alpha / std::sqrt(tokens * static_cast<double>(x.cols));
      add_noise(noise.key, t, 0, scale, x.row<float>(t), x.cols);
    }
  });
}

}  // namespace

void cpu::add_embedding(OpTable& ops) {
  ops.embedding_forward.add(CpuOps::kName, embedding_forward);
  ops.embedding_backward.add(CpuOps::kName, embedding_backward);
  ops.embedding_noise.add(CpuOps::kName, embedding_noise);
}

}  // namespace hearth
