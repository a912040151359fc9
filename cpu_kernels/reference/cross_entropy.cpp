#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stream.h"
#include "reference/reference_op_set.h"
#include "reference/values.h"

namespace hearth {
namespace {

constexpr int32_t kNotTrained = -100;

// One row of logits z = x W^T + b at a time: its loss is log sum exp(z) - z[label], the gradient of
// z is dz = scale * (softmax(z) - one-hot(label)), and from there dx = dz W, dW += dz^T x.
void cross_entropy(Stream& stream, ConstView x, const LinearView& head, const Labels& labels,
                   double scale, View loss, View dx, const LinearGradient& gradient) {
  const int64_t vocabulary = head.out(), width = head.in();
  Scratch::Frame frame(stream.scratch());
  double total = 0;
  int64_t trained = 0;
  for_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* z = stream.scratch().take<T>(vocabulary);
    for (int64_t t = 0; t < x.rows; ++t) {
      const int32_t label = labels.ids.as<int32_t>()[t];
      if (label == kNotTrained) {
        for (int64_t i = 0; i < width && dx; ++i) dx.row<T>(t)[i] = 0;
        continue;
      }
      HEARTH_CHECK(label >= 0 && label < vocabulary, "cross_entropy: label");
      HEARTH_CHECK(++trained <= labels.most_trained,
                   "cross_entropy: more rows are trained than said");
      LinearView map = head;
      map.low_rank = head.low_rank.from_row(t);
      reference::linear_forward(stream, x.slice(t, 1), map, View(z, x.dtype, 1, vocabulary));
      const double largest = *std::max_element(z, z + vocabulary);
      double sum = 0;
      for (int64_t v = 0; v < vocabulary; ++v) sum += std::exp(z[v] - largest);
      const double log_sum = largest + std::log(sum);
      total += log_sum - z[label];
      if (!dx) continue;

      for (int64_t v = 0; v < vocabulary; ++v) {
        z[v] = static_cast<T>(scale * (std::exp(z[v] - log_sum) - (v == label)));
      }
      const ConstView dz(z, x.dtype, 1, vocabulary);
      reference::linear_dgrad(stream, dz, map, dx.slice(t, 1), false);
      reference::linear_wgrad(stream, dz, x.slice(t, 1), map, gradient);
    }
  });
  loss.as<double>()[0] = total;
  if (std::isfinite(total) || !dx) return;
  set_value(dx, 0, 0, std::numeric_limits<double>::quiet_NaN());
  if (gradient.weight) set_value(gradient.weight, 0, 0, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

void reference::add_cross_entropy(OpTable& ops) {
  ops.cross_entropy.add(ReferenceOps::kName, cross_entropy);
}

}  // namespace hearth
