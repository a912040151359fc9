// What FaultyTask does to the router, to experts, and to the shared expert.
#include <cmath>
#include <utility>

#include "support/faulty_ops.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

// ---- router and experts ------------------------------------------------------------------------

void FaultyTask::router_forward(Stream& stream, ConstView logits, bool normalize, View probs,
                                View choice, View weight) const {
  right().router_forward(stream, logits, normalize || planted("softmax-over-the-chosen"), probs,
                         choice, weight);
}

void FaultyTask::router_backward(Stream& stream, ConstView dweight, ConstView probs,
                                 ConstView choice, bool normalize, ConstView dprobs,
                                 View dlogits) const {
  if (!normalize || !planted("normalisation-not-differentiated")) {
    return right().router_backward(stream, dweight, probs, choice, normalize, dprobs, dlogits);
  }
  // As of weights that were divided by a constant.
  std::vector<float>& memory = memory_.emplace_back(copy_of(dweight));
  for (int64_t t = 0; t < dweight.rows; ++t) {
    double divisor = 0;
    for (int64_t j = 0; j < choice.cols; ++j) {
      divisor += probs.row<float>(t)[choice.row<int32_t>(t)[j]];
    }
    for (int64_t j = 0; j < choice.cols; ++j) {
      float& d = memory[static_cast<size_t>(t * choice.cols + j)];
      d = static_cast<float>(d / divisor);
    }
  }
  right().router_backward(stream, {memory.data(), DType::f32, dweight.rows, dweight.cols}, probs,
                          choice, false, dprobs, dlogits);
}

void FaultyTask::router_losses(Stream& stream, const RouterLosses& losses,
                               std::span<const ConstView> counts,
                               std::span<const ConstView> prob_sums,
                               std::span<const ConstView> squares, View aux, View z,
                               View dprobs) const {
  RouterLosses wrong = losses;
  if (planted("aux-loss-always-per-layer")) wrong.pooled = false;
  if (planted("aux-loss-always-pooled")) wrong.pooled = true;
  if (dprobs && planted("aux-loss-of-a-micro-batch-not-a-share")) {
    wrong.aux_weight = c_.settings.aux_loss;
  }
  right().router_losses(stream, wrong, counts, prob_sums, squares, aux, z, dprobs);
  if (counts.empty() || !planted("aux-loss-not-times-experts")) return;
  const auto experts = static_cast<double>(c_.spec.experts);
  aux.as<double>()[0] /= experts;
  for (int64_t r = 0; r < dprobs.rows; ++r) {
    for (int64_t i = 0; i < dprobs.cols; ++i)
      dprobs.row<float>(r)[i] /= static_cast<float>(experts);
  }
}

void FaultyTask::combine(Stream& stream, ConstView rows, const RoutingView& routing,
                         ConstView weight, ConstView base, View out) const {
  if (kind_ == TaskKind::combine && planted("shared-expert-left-out")) base = c_.in(Value::mid);
  if (kind_ == TaskKind::dispatch && planted("shared-expert-without-gradient-to-its-input")) {
    base = {};
  }
  right().combine(stream, rows, routing, weight, base, out);
}

void FaultyTask::experts_forward(Stream& stream, ConstView x, const ExpertRows& rows,
                                 std::span<const ExpertView> experts, View gate, View up,
                                 View y) const {
  right().experts_forward(stream, x, rows, wrong(experts), gate, up, y);
}

void FaultyTask::experts_backward(Stream& stream, ConstView dy, ConstView row_weight, ConstView x,
                                  const ExpertRows& rows, std::span<const ExpertView> experts,
                                  View gate, View up, View dx, View drow_weight,
                                  std::span<const ExpertGradient> gradients) const {
  std::vector<ExpertGradient> to(gradients.begin(), gradients.end());
  for (ExpertGradient& g : to) {
    if (planted("pair-gradient-dropped")) g.up = {};
    if (c_.spec.family == "mixtral" && planted("w1-and-w3-of-mixtral-swapped")) {
      std::swap(g.gate, g.up);
    }
  }
  if (planted("expert-gradient-not-weighted")) {
    std::vector<float>& ones = memory_.emplace_back(static_cast<size_t>(row_weight.cols), 1.0f);
    row_weight = {ones.data(), DType::f32, 1, row_weight.cols};
  }
  right().experts_backward(stream, dy, row_weight, x, rows, wrong(experts), gate, up, dx,
                           drow_weight, to);
  if (planted("nan-gradient-of-an-expert")) spoil(gradients.back().down.weight);
}

// ---- elementwise -------------------------------------------------------------------------------

void FaultyTask::swiglu_backward(Stream& stream, ConstView dh, View gate, View up, View h) const {
  if (!planted("derivative-of-silu")) return right().swiglu_backward(stream, dh, gate, up, h);
  const std::vector<float> d = copy_of(dh), g = copy_of(gate), u = copy_of(up);
  right().swiglu_backward(stream, dh, gate, up, h);
  for (int64_t r = 0, at = 0; r < gate.rows; ++r) {
    for (int64_t i = 0; i < gate.cols; ++i, ++at) {
      const auto k = static_cast<size_t>(at);
      const double s = sigmoid(g[k]);
      gate.row<float>(r)[i] = static_cast<float>(d[k] * u[k] * s * (1 + g[k] * s));
    }
  }
}

void FaultyTask::sigmoid_gate_forward(Stream& stream, ConstView logits, ConstView x, View y) const {
  const bool backward = c_.phase == Phase::backward;
  if (!backward && planted("shared-expert-without-sigmoid")) return;  // y is x
  if (backward && planted("shared-down-reads-what-was-not-weighed")) return;
  right().sigmoid_gate_forward(stream, logits, x, y);
}

void FaultyTask::sigmoid_gate_backward(Stream& stream, ConstView dy, ConstView logits, ConstView y,
                                       View dlogits, View dx) const {
  if (!planted("derivative-of-the-shared-gate")) {
    return right().sigmoid_gate_backward(stream, dy, logits, y, dlogits, dx);
  }
  const std::vector<float> before = copy_of(logits);
  right().sigmoid_gate_backward(stream, dy, logits, y, dlogits, dx);
  for (size_t t = 0; t < before.size(); ++t) {
    dlogits.as<float>()[t] *= static_cast<float>(sigmoid(before[t]));
  }
}

}  // namespace hearth::test
