// Values computed by PyTorch 2.15 in f64, so that a formula that is wrong in forward and backward
// alike is seen. Inputs are waves: element i is sin(phase + i).
#include <cmath>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

Tensor wave(int64_t rows, int64_t cols, double phase, double scale = 1) {
  Tensor tensor(DType::f32, rows, cols);
  for (int64_t i = 0; i < rows * cols; ++i) {
    tensor.set(i / cols, i % cols, scale * std::sin(phase + static_cast<double>(i)));
  }
  return tensor;
}

std::string differs(const Tensor& actual, const std::vector<double>& recorded) {
  return difference(actual, Tensor(DType::f64, actual.rows(), actual.cols()).assign(recorded),
                    1e-6);
}

}  // namespace

TEST_CASE("recorded: rms_norm") {
  for_each_back_end([](const OpSet& ops) { return ops.row_scratch(2, 3); },
                    [](const OpSet& ops, Stream& stream) {
                      const Tensor x = wave(2, 3, 0.1), weight = wave(1, 3, 0.2);
                      Tensor y(DType::f32, 2, 3), rstd(DType::f32, 1, 2);
                      ops.rmsnorm_forward(stream, x.view(), weight.view(), 1e-2, y.view(),
                                          rstd.view());
                      CHECK(differs(y, {0.0273355941, 1.14481324, 0.961869138, 0.0114614068,
                                        -1.05815728, -1.03852714}) == "");
                    });
}

TEST_CASE("recorded: linear") {
  for_each_back_end(
      [](const OpSet& ops) { return ops.linear_scratch(2, 2, 3, 0); },
      [](const OpSet& ops, Stream& stream) {
        const Tensor x = wave(2, 3, 1.1), w = wave(2, 3, 1.2), b = wave(1, 2, 1.3);
        Tensor y(DType::f32, 2, 2);
        ops.linear_forward(stream, x.view(), {w.view(), b.view(), Compute::f32}, y.view());
        CHECK(differs(y, {2.48967271, -0.797110777, -0.536992326, 2.29194678}) == "");
      });
}

TEST_CASE("recorded: scaled_dot_product_attention") {
  const AttentionShape shape = {.heads = 2, .kv_heads = 1, .head_dim = 2, .scale = 0.7};
  for_each_back_end(
      [&](const OpSet& ops) { return ops.attention_scratch(shape, 3, 3); },
      [&](const OpSet& ops, Stream& stream) {
        const Tensor q = wave(3, 4, 0.3), k = wave(3, 2, 0.4), v = wave(3, 2, 0.5);
        const Tensor offsets = Tensor(DType::i32, 1, 2).assign({0, 3});
        Tensor out(DType::f32, 3, 4), log_sum(DType::f32, 3, 2);
        ops.attention_forward(stream, shape, {offsets.view(), offsets.view()}, q.view(), k.view(),
                              v.view(), out.view(), log_sum.view());
        CHECK(differs(out, {0.479425539, 0.997494987, 0.479425539, 0.997494987, 0.554627928,
                            0.145780287, 0.517997875, 0.560638849, 0.312442724, 0.147675633,
                            -0.504077757, -0.455957383}) == "");
      });
}

TEST_CASE("recorded: silu(gate) * up") {
  for_each_back_end([](const OpSet& ops) { return ops.row_scratch(1, 4); },
                    [](const OpSet& ops, Stream& stream) {
                      const Tensor gate = wave(1, 4, 0.6, 3), up = wave(1, 4, 0.7);
                      Tensor h(DType::f32, 1, 4);
                      ops.swiglu_forward(stream, gate.view(), up.view(), h.view());
                      CHECK(differs(h, {0.921829239, 2.83252241, 0.544888295, 0.147404538}) == "");
                    });
}

TEST_CASE("recorded: softmax, topk, renormalized") {
  for_each_back_end(
      [](const OpSet& ops) { return ops.row_scratch(2, 4); },
      [](const OpSet& ops, Stream& stream) {
        const Tensor logits = wave(2, 4, 0.8, 2);
        Tensor probs(DType::f32, 2, 4), weight(DType::f32, 2, 2);
        Tensor choice(DType::i32, 2, 2);
        ops.router_forward(stream, logits.view(), true, probs.view(), choice.view(), weight.view());
        CHECK(differs(probs, {0.311936426, 0.521016902, 0.145192946, 0.0218537261, 0.0128836933,
                              0.0373035049, 0.253792842, 0.69601996}) == "");
        CHECK(difference(choice, Tensor(DType::i32, 2, 2).assign({1, 0, 3, 2}), 0) == "");
        CHECK(differs(weight, {0.625505517, 0.374494483, 0.732796988, 0.267203012}) == "");
      });
}

TEST_CASE("recorded: cross_entropy") {
  for_each_back_end([](const OpSet& ops) { return ops.cross_entropy_scratch(2, 3, 4, 0); },
                    [](const OpSet& ops, Stream& stream) {
                      const Tensor x = wave(2, 3, 0.9), head = wave(4, 3, 1.0);
                      const Tensor labels = Tensor(DType::i32, 1, 2).assign({2, 0});
                      Tensor loss(DType::f64, 1, 1);
                      ops.cross_entropy(stream, x.view(), {head.view(), {}, Compute::f32},
                                        labels.view(), 1, loss.view(), {}, {});
                      CHECK(differs(loss, {4.56346649}) == "");
                    });
}
