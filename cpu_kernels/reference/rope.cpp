#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

void rope(Stream&, View x, int64_t heads, ConstView positions, ConstView cosine, ConstView sine,
          bool inverse) {
  const int64_t half = cosine.cols;
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < x.rows; ++t) {
      const int64_t position = positions.as<int32_t>()[t];
      HEARTH_CHECK(position >= 0 && position < cosine.rows, "rope: position");
      for (int64_t h = 0; h < heads; ++h) {
        T* first = x.row<T>(t) + h * 2 * half;
        T* second = first + half;
        for (int64_t i = 0; i < half; ++i) {
          const double c = value(cosine, position, i);
          const double s = inverse ? -value(sine, position, i) : value(sine, position, i);
          const double x1 = first[i], x2 = second[i];
          first[i] = static_cast<T>(x1 * c - x2 * s);
          second[i] = static_cast<T>(x2 * c + x1 * s);
        }
      }
    }
  });
}

}  // namespace

void reference::add_rope(OpTable& ops) { ops.rope.add(ReferenceOps::kName, rope); }

}  // namespace hearth
