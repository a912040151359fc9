// The f32 constants of an AdamW update, rounded in one place for every back end.
#pragma once

namespace hearth {

struct AdamWOptions;

/// Computed in f64 and rounded once. With g = gradient * gradient_scale:
///   m = beta1 m + rest1 g;  v = beta2 v + rest2 g^2;
///   w -= w decay + rate m / (sqrt(v) root_c2 + eps).
struct AdamWStep {
  float gradient_scale, beta1, beta2;
  float rest1, rest2;  // 1 - beta
  float decay;         // lr * weight_decay
  float rate;          // lr / c1
  float root_c2;       // 1 / sqrt(c2)
  float eps;
};
AdamWStep adamw_step(const AdamWOptions& options);

}  // namespace hearth
