#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {

void ReferenceOps::sum_squares(Stream&, std::span<const ConstView> x, View out) const {
  HEARTH_CHECK(has_shape(out, 1, std::ssize(x)), "sum_squares: shapes");
  for (size_t n = 0; n < x.size(); ++n) {
    const ConstView all = x[n].reshape(1, x[n].size());
    double sum = 0;
    for (int64_t i = 0; i < all.cols; ++i) sum += value(all, 0, i) * value(all, 0, i);
    out.as<double>()[n] = sum;
  }
}

// torch.optim.AdamW on f32 state: the moments are rounded when they are stored, and the step is
// taken from the stored moments. Each is computed in double and rounded once, so a result differs
// from torch's f32 arithmetic by its rounding errors only. `working` is rounded from the new master.
void ReferenceOps::adamw(Stream&, const AdamWOptions& o, View gradient, View master, View moment1,
                         View moment2, View working) const {
  HEARTH_CHECK(has_shape(gradient, master.rows, master.cols) &&
                   has_shape(moment1, master.rows, master.cols) &&
                   has_shape(moment2, master.rows, master.cols) &&
                   empty_or_shape(working, master.rows, master.cols) && o.step >= 1,
               "adamw: shapes");
  const double c1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double c2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  for (int64_t r = 0; r < master.rows; ++r) {
    for (int64_t i = 0; i < master.cols; ++i) {
      const double g = value(gradient, r, i) * o.gradient_scale;
      set_value(moment1, r, i, o.beta1 * value(moment1, r, i) + (1 - o.beta1) * g);
      set_value(moment2, r, i, o.beta2 * value(moment2, r, i) + (1 - o.beta2) * g * g);
      const double m = value(moment1, r, i) / c1, v = value(moment2, r, i) / c2;
      const double w = value(master, r, i);
      set_value(master, r, i, w - o.lr * o.weight_decay * w - o.lr * m / (std::sqrt(v) + o.eps));
      if (working) set_value(working, r, i, value(master, r, i));
      set_value(gradient, r, i, 0);
    }
  }
}

}  // namespace hearth
