// An MoE layer forward and backward on one device: routing, permutation, experts and combination, as
// the schedule runs them, without norms and the router's own map.
#include "gpu_bench.h"

namespace hearth::bench {
namespace {

struct Shape {
  int64_t tokens, hidden, width, experts, k;
  Compute compute;
  bool frozen = false;  // experts without gradients
};

class Layer {
 public:
  Layer(GpuBench& b, const Shape& s)
      : b_(b),
        rows_(s.tokens * s.k),
        logits_(f32(s.tokens, s.experts)),
        probs_(f32(s.tokens, s.experts)),
        weight_(f32(s.tokens, s.k)),
        dweight_(f32(s.tokens, s.k)),
        x_(f32(s.tokens, s.hidden)),
        out_(f32(s.tokens, s.hidden)),
        dx_(f32(s.tokens, s.hidden)),
        routed_(f32(rows_, s.hidden)),
        y_(f32(rows_, s.hidden)),
        droutes_(f32(rows_, s.hidden)),
        gate_(f32(rows_, s.width)),
        up_(f32(rows_, s.width)),
        row_weight_(f32(1, rows_)),
        drow_weight_(f32(1, rows_)),
        choice_(ints(s.tokens, s.k)),
        offsets_(ints(1, s.experts + 1)),
        source_(ints(1, rows_)),
        row_of_(ints(s.tokens, s.k)) {
    const DType stored = s.compute == Compute::bf16 ? DType::bf16 : DType::f32;
    const View gate_up = b.random(stored, 2 * s.experts * s.width, s.hidden, 0.02f),
               down = b.random(stored, s.experts * s.hidden, s.width, 0.02f);
    for (int64_t e = 0; e < s.experts; ++e) {
      weights_.push_back({{gate_up.slice(2 * e * s.width, s.width), {}, s.compute},
                          {gate_up.slice((2 * e + 1) * s.width, s.width), {}, s.compute},
                          {down.slice(e * s.hidden, s.hidden), {}, s.compute}});
    }
    gradients_.resize(weights_.size());
    if (s.frozen) return;
    const View dgate_up = f32(2 * s.experts * s.width, s.hidden),
               ddown = f32(s.experts * s.hidden, s.width);
    for (int64_t e = 0; e < s.experts; ++e) {
      ExpertGradient& gradient = gradients_[static_cast<size_t>(e)];
      gradient.gate.weight = dgate_up.slice(2 * e * s.width, s.width);
      gradient.up.weight = dgate_up.slice((2 * e + 1) * s.width, s.width);
      gradient.down.weight = ddown.slice(e * s.hidden, s.hidden);
    }
  }

  void forward() {
    const OpSet& ops = b_.ops();
    Stream& s = b_.stream();
    ops.router_forward(s, logits_, true, probs_, choice_, weight_);
    ops.route(s, choice_, {}, offsets_, source_, row_of_);
    ops.permute(s, x_, source_, {}, routed_);
    ops.experts_forward(s, routed_, offsets_, weights_, gate_, up_, y_);
    ops.combine(s, y_, {{}, {}, row_of_}, weight_, x_, out_);
  }
  void backward() {
    const OpSet& ops = b_.ops();
    Stream& s = b_.stream();
    ops.permute(s, out_, source_, {}, y_);
    ops.to_expert_order(s, weight_, routes(), row_weight_);
    ops.experts_backward(s, y_, row_weight_, routed_, offsets_, weights_, gate_, up_, droutes_,
                         drow_weight_, gradients_);
    ops.to_token_order(s, drow_weight_, routes(), dweight_);
    ops.router_backward(s, dweight_, probs_, choice_, true, {}, logits_gradient());
    ops.combine(s, droutes_, {{}, {}, row_of_}, {}, out_, dx_);
  }

 private:
  View f32(int64_t rows, int64_t cols) { return b_.random(DType::f32, rows, cols); }
  View ints(int64_t rows, int64_t cols) {
    return b_.integers(std::vector<int32_t>(static_cast<size_t>(rows * cols))).reshape(rows, cols);
  }
  RoutingView routes() const { return {offsets_, source_, row_of_}; }
  View logits_gradient() {
    if (!dlogits_) dlogits_ = f32(logits_.rows, logits_.cols);
    return dlogits_;
  }

  GpuBench& b_;
  int64_t rows_;
  View logits_, probs_, weight_, dweight_, x_, out_, dx_, routed_, y_, droutes_, gate_, up_,
      row_weight_, drow_weight_, choice_, offsets_, source_, row_of_, dlogits_;
  std::vector<ExpertView> weights_;
  std::vector<ExpertGradient> gradients_;
};

void moe_layer(const GpuTarget& target, const Shape& s) {
  const int64_t rows = s.tokens * s.k;
  GpuBench b(target, max_of(target.ops.experts_scratch(rows, s.experts, s.hidden, s.width, 0,
                                                       Compute::bf16, rows),
                            target.ops.row_scratch(rows, std::max(s.hidden, s.experts))));
  Layer layer(b, s);
  const double forward = 6.0 * static_cast<double>(rows * s.hidden * s.width);
  const std::string kind = std::string(s.compute == Compute::bf16 ? " bf16" : " f32") +
                           (s.frozen ? ", frozen experts" : "");
  const std::string shape = shape_text({s.tokens, s.hidden, s.width, s.experts, s.k});
  b.report_flops("moe layer forward" + kind, shape, forward, [&] { layer.forward(); });
  // Gate and up are overwritten by the backward: it is timed behind a forward.
  b.report_flops("moe layer forward and backward" + kind, shape, (s.frozen ? 2 : 3) * forward, [&] {
    layer.forward();
    layer.backward();
  });
}

}  // namespace

void bench_moe_layer(const GpuTarget& target) {
  if (target.small) {
    for (const bool frozen : {false, true}) {
      moe_layer(target, {64, 32, 16, 8, 2, Compute::bf16, frozen});
    }
    moe_layer(target, {64, 32, 16, 8, 2, Compute::f32});
    return;
  }
  moe_layer(target, {8192, 2048, 768, 128, 8, Compute::bf16});   // 512 tokens an expert
  moe_layer(target, {16384, 2048, 768, 128, 8, Compute::bf16});  // 1024
  moe_layer(target, {8192, 2048, 1024, 64, 8, Compute::bf16});   // 1024, OLMoE
  moe_layer(target, {8192, 4096, 1536, 64, 4, Compute::bf16});   // 512
  moe_layer(target, {8192, 4096, 1024, 64, 4, Compute::bf16});   // 512, of SonicMoE's figure 14
  moe_layer(target, {8192, 2048, 768, 128, 8, Compute::bf16, true});
  moe_layer(target, {8192, 2048, 768, 128, 8, Compute::f32});
}

}  // namespace hearth::bench
