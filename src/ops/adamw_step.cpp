#include "ops/adamw_step.h"

#include <cmath>

#include "ops/op_set.h"

namespace hearth {

AdamWStep adamw_step(const AdamWOptions& o) {
  const auto step = static_cast<double>(o.step);
  return {.gradient_scale = static_cast<float>(o.gradient_scale),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .rest1 = static_cast<float>(1 - o.beta1),
          .rest2 = static_cast<float>(1 - o.beta2),
          .decay = static_cast<float>(o.lr * o.weight_decay),
          .rate = static_cast<float>(o.lr / (1 - std::pow(o.beta1, step))),
          .root_c2 = static_cast<float>(1 / std::sqrt(1 - std::pow(o.beta2, step))),
          .eps = static_cast<float>(o.eps)};
}

}  // namespace hearth
