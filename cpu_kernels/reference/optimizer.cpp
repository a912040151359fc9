#include <cmath>

#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

// torch.optim.AdamW on f32 state: the moments are rounded when they are stored, and the step is
// taken from the stored moments. Each is computed in double and rounded once, so a result differs
// from torch's f32 arithmetic by its rounding errors only. `working` is rounded from the new master.
void update(const AdamWOptions& o, const AdamWTensors& t) {
  const double c1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double c2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  for (int64_t r = 0; r < t.master.rows; ++r) {
    for (int64_t i = 0; i < t.master.cols; ++i) {
      const double g = value(t.gradient, r, i) * o.gradient_scale;
      set_value(t.moment1, r, i, o.beta1 * value(t.moment1, r, i) + (1 - o.beta1) * g);
      set_value(t.moment2, r, i, o.beta2 * value(t.moment2, r, i) + (1 - o.beta2) * g * g);
      const double m = value(t.moment1, r, i) / c1, v = value(t.moment2, r, i) / c2;
      const double w = value(t.master, r, i);
      set_value(t.master, r, i, w - o.lr * o.weight_decay * w - o.lr * m / (std::sqrt(v) + o.eps));
      if (t.working) set_value(t.working, r, i, value(t.master, r, i));
      set_value(t.gradient, r, i, 0);
    }
  }
}

void sum_squares(Stream&, std::span<const ConstView> x, View out) {
  for (size_t n = 0; n < x.size(); ++n) {
    const ConstView all = x[n].reshape(1, x[n].size());
    double sum = 0;
    for (int64_t i = 0; i < all.cols; ++i) sum += value(all, 0, i) * value(all, 0, i);
    out.as<double>()[n] = sum;
  }
}

void adamw(Stream&, const AdamWOptions& options, std::span<const AdamWTensors> tensors) {
  for (const AdamWTensors& t : tensors) update(options, t);
}

}  // namespace

void reference::add_optimizer(OpTable& ops) {
  ops.sum_squares.add(ReferenceOps::kName, sum_squares);
  ops.adamw.add(ReferenceOps::kName, adamw);
}

}  // namespace hearth
