#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Case {
  int64_t layers, experts;
  bool pooled = false, squares = true, gradients = true;
  double tokens = 37;
};

std::vector<ConstView> rows_of(const View& sums) {
  std::vector<ConstView> rows;
  for (int64_t l = 0; l < sums.rows; ++l) rows.push_back(sums.slice(l, 1));
  return rows;
}

/// The gradient of prob_sums is that of any token's probabilities.
OpTest router_losses(const Case& c) {
  OpTest test;
  test.described("router_losses", "layers", c.layers, "experts", c.experts, "pooled", c.pooled);
  if (c.layers > 0) {
    test.random("counts", DType::f64, c.layers, c.experts, 20);
    test.random("sums", DType::f64, c.layers, c.experts);
    if (c.squares) test.random("squares", DType::f64, c.layers, 1);
    if (c.gradients) test.random("dsums", c.layers, c.experts);
  }
  test.random("aux", DType::f64, 1, 1);
  test.random("z", DType::f64, 1, 1);
  test.random("daux", DType::f64, 1, 1).fill(0.37);  // the weight
  test.outputs = {"aux"};
  test.inputs = {"sums"};
  test.scratch = [=](const OpSet& ops) { return ops.router_losses_scratch(c.layers, c.experts); };
  const auto run = [=](const Run& r, double weight, View dprobs) {
    r.ops.router_losses(r.stream, {c.pooled, c.tokens, weight}, rows_of(r.view("counts")),
                        rows_of(r.view("sums")), rows_of(r.view("squares")), r.view("aux"),
                        r.view("z"), dprobs);
  };
  test.forward = [=](const Run& r) { run(r, 0, {}); };
  test.backward = [=](const Run& r) { run(r, r["daux"].get(0, 0), r.view("dsums")); };
  return test;
}

}  // namespace

TEST_CASE("router losses: values and gradients, by layer and pooled") {
  for (const bool pooled : {false, true}) {
    INFO("pooled " << pooled);
    for (const Case& c : {Case{1, 1}, Case{1, 5}, Case{3, 4}, Case{2, 7, false, false}}) {
      Case with = c;
      with.pooled = pooled;
      check_op(router_losses(with));
    }
    check_back_ends(
        router_losses({.layers = 3, .experts = 4, .pooled = pooled, .gradients = false}));
    check_back_ends(router_losses({.layers = 61, .experts = 257, .pooled = pooled}));
  }
}

TEST_CASE("router losses: zero where no layer has experts") {
  const OpTest test = router_losses({.layers = 0, .experts = 0});
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    CHECK(result.at("aux").get(0, 0) == 0);
    CHECK(result.at("z").get(0, 0) == 0);
  });
}

TEST_CASE("router losses: two layers by hand") {
  for (const bool pooled : {false, true}) {
    OpTest test = router_losses({.layers = 2, .experts = 2, .pooled = pooled, .tokens = 4});
    test.tensors.at("counts").assign({3, 1, 2, 2});
    test.tensors.at("sums").assign({3, 1, 1, 3});
    test.tensors.at("squares").assign({6, 10});
    test.tensors.at("daux").fill(2);
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors r = run_op(ops, stream, test.tensors, test.backward);
      // By layer 3/4 3/4 + 1/4 1/4 + 1/2 1/4 + 1/2 3/4; pooled 2 (5/8 1/2 + 3/8 1/2).
      CHECK(r.at("aux").get(0, 0) == (pooled ? 1 : 1.125));
      CHECK(r.at("z").get(0, 0) == 2);  // a mean over 2 layers and 4 tokens
      const Tensor by_layer = Tensor(DType::f32, 2, 2).assign({0.375, 0.125, 0.25, 0.25});
      const Tensor over_all = Tensor(DType::f32, 2, 2).assign({0.3125, 0.1875, 0.3125, 0.1875});
      CHECK(difference(r.at("dsums"), pooled ? over_all : by_layer, 0) == "");
    });
  }
}
