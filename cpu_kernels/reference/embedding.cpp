#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

void embedding_forward(Stream&, ConstView ids, ConstView table, View out) {
  for_type(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < out.rows; ++t) {
      const int64_t id = ids.as<int32_t>()[t];
      HEARTH_CHECK(id >= 0 && id < table.rows, "embedding_forward: token id");
      for (int64_t i = 0; i < out.cols; ++i) out.row<T>(t)[i] = static_cast<T>(value(table, id, i));
    }
  });
}

void embedding_backward(Stream&, ConstView ids, ConstView dout, int64_t padding,
                        View table_gradient) {
  for_type(dout.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < dout.rows; ++t) {
      const int64_t id = ids.as<int32_t>()[t];
      HEARTH_CHECK(id >= 0 && id < table_gradient.rows, "embedding_backward: token id");
      if (id == padding) continue;
      for (int64_t i = 0; i < dout.cols; ++i) add_value(table_gradient, id, i, dout.row<T>(t)[i]);
    }
  });
}

void embedding_noise(Stream&, const Noise& noise, ConstView offsets, View x) {
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t d = 0; d + 1 < offsets.cols; ++d) {
      const int32_t begin = offsets.as<int32_t>()[d], end = offsets.as<int32_t>()[d + 1];
      const double scale = noise.alpha / std::sqrt(static_cast<double>((end - begin) * x.cols));
      for (int64_t t = begin; t < end; ++t) {
        add_noise(noise.key, t, 0, scale, x.row<T>(t), x.cols);
      }
    }
  });
}

}  // namespace

void reference::add_embedding(OpTable& ops) {
  ops.embedding_forward.add(ReferenceOps::kName, embedding_forward);
  ops.embedding_backward.add(ReferenceOps::kName, embedding_backward);
  ops.embedding_noise.add(ReferenceOps::kName, embedding_noise);
}

}  // namespace hearth
