#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Case {
  int64_t rows, out, in;
  DType stored = DType::f32;
  bool bias = false;
  bool accumulate = false;
  bool trained = true;
  int64_t rank = 0;
  bool pair_trained = true;
  double dropout = 0;
};

OpTest linear(const Case& c) {
  OpTest test;
  test.described("linear", "rows", c.rows, "out", c.out, "in", c.in, "stored", c.stored, "bias",
                 c.bias, "accumulate", c.accumulate, "trained", c.trained, "rank", c.rank,
                 "dropout", c.dropout);
  test.random("x", c.rows, c.in);
  test.random("w", c.stored, c.out, c.in);
  test.random("y", c.rows, c.out);
  test.random("dy", c.rows, c.out);
  test.random("dx", c.rows, c.in);
  if (c.trained) test.random("dw", c.out, c.in);
  if (c.bias) test.random("b", c.stored, 1, c.out);
  if (c.bias && c.trained) test.random("db", 1, c.out);
  test.outputs = {"y"};
  test.inputs = {"x"};
  if (c.trained) test.inputs.push_back("w");
  if (c.trained && c.bias) test.inputs.push_back("b");
  test.products = true;
  if (c.rank > 0) {
    test.low_rank("w", c.out, c.in, c.rank, c.stored, c.pair_trained);
    test.bf16_tolerance = 2e-3;  // the product with A is rounded as an operand
  }
  std::vector<double> ids;  // of rows: any that differ
  for (int64_t t = 0; t < c.rows; ++t) ids.push_back(static_cast<double>(3 * t + 5));
  if (c.dropout > 0) test.integers("ids", 1, c.rows, ids);
  test.scratch = [=](const OpSet& ops) { return ops.linear_scratch(c.rows, c.out, c.in, c.rank); };
  const auto map = [=](const Run& r) {
    return r.linear("w", "b", {c.dropout, 0x123456789abcdefu, r.view("ids")});
  };
  test.forward = [=](const Run& r) {
    r.ops.linear_forward(r.stream, r.view("x"), map(r), r.view("y"));
  };
  const Body data_gradient = [=](const Run& r) {
    r.ops.linear_dgrad(r.stream, r.view("dy"), map(r), r.view("dx"), c.accumulate);
  };
  const Body weight_gradient = [=](const Run& r) {
    r.ops.linear_wgrad(r.stream, r.view("dy"), r.view("x"), map(r), r.gradient("w", "b"));
  };
  test.backward = [=](const Run& r) {
    data_gradient(r);
    weight_gradient(r);
  };
  const double flops = 2.0 * static_cast<double>(c.rows * c.out * c.in);
  test.timed = {{"forward", test.forward, flops},
                {"data gradient", data_gradient, flops},
                {"weight gradient", weight_gradient, flops}};
  return test;
}

// The maps of an expert of a small model, by rows.
const bool added = [] {
  for (const auto& [stored, compute] : {std::pair{DType::f32, Compute::f32},
                                        {DType::bf16, Compute::f32},
                                        {DType::bf16, Compute::bf16}}) {
    for (const int64_t rows : {1, 16, 64, 128, 256, 512}) {
      const Case c{.rows = rows, .out = 768, .in = 2048, .stored = stored};
      add_perf_cases({{[c] { return linear(c); }, compute}});
    }
  }
  return true;
}();

}  // namespace

TEST_CASE("linear: values and gradients") {
  for (const bool bias : {false, true}) {
    for (const bool accumulate : {false, true}) {
      check_op(linear({.rows = 5, .out = 3, .in = 7, .bias = bias, .accumulate = accumulate}));
      check_op(linear({.rows = 1, .out = 1, .in = 1, .bias = bias, .accumulate = accumulate}));
    }
  }
}

TEST_CASE("linear: odd sizes, every stored type") {
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    INFO("stored " << name_of(stored));
    check_back_ends(linear({.rows = 1, .out = 17, .in = 33, .stored = stored, .bias = true}));
    check_back_ends(linear({.rows = 7, .out = 33, .in = 17, .stored = stored, .bias = true}));
    check_back_ends(linear({.rows = 37, .out = 1, .in = 65, .stored = stored, .accumulate = true}));
    check_back_ends(
        linear({.rows = 64, .out = 64, .in = 64, .stored = stored, .accumulate = true}));
  }
}

TEST_CASE("linear: more than one tile in every direction") {
  check_back_ends(linear({.rows = 301, .out = 131, .in = 97, .bias = true}));
  check_back_ends(linear({.rows = 67, .out = 301, .in = 35, .stored = DType::bf16}));
  check_back_ends(linear({.rows = 3, .out = 40, .in = 1030, .stored = DType::bf16}));
}

TEST_CASE("linear: weights whose rows are whole pieces of 16 bytes") {
  check_back_ends(linear({.rows = 130, .out = 392, .in = 104, .stored = DType::bf16}));
  check_back_ends(linear({.rows = 40, .out = 136, .in = 400, .stored = DType::bf16}));
  check_back_ends(linear({.rows = 9, .out = 72, .in = 40, .stored = DType::bf16, .rank = 8}));
}

TEST_CASE("linear: no rows, and a frozen weight") {
  check_back_ends(linear({.rows = 0, .out = 5, .in = 3, .bias = true}));
  check_back_ends(linear({.rows = 9, .out = 5, .in = 3, .bias = true, .trained = false}));
}

TEST_CASE("linear: a low-rank pair, values and gradients") {
  for (const double dropout : {0.0, 0.3}) {
    for (const bool trained : {false, true}) {
      check_op(linear({.rows = 5,
                       .out = 3,
                       .in = 7,
                       .bias = true,
                       .accumulate = trained,
                       .trained = trained,
                       .rank = 2,
                       .dropout = dropout}));
    }
  }
  check_op(linear({.rows = 2, .out = 1, .in = 1, .trained = false, .rank = 1}));
}

TEST_CASE("linear: a low-rank pair over more than one tile, of any rank, frozen, without rows") {
  for (const double dropout : {0.0, 0.5}) {
    Case many{.rows = 530, .out = 33, .in = 70}, wide{.rows = 40, .out = 301, .in = 430};
    for (Case* c : {&many, &wide}) {
      c->stored = DType::bf16;
      c->trained = false;
      c->rank = 8;
      c->dropout = dropout;
      check_back_ends(linear(*c));
    }
    check_back_ends(linear({.rows = 37, .out = 33, .in = 65, .rank = 40, .dropout = dropout}));
    check_back_ends(linear({.rows = 0, .out = 5, .in = 3, .rank = 2, .dropout = dropout}));
  }
  check_back_ends(linear({.rows = 9, .out = 5, .in = 3, .rank = 4, .pair_trained = false}));
}

TEST_CASE("linear: dropout keeps the share that it should, divided by it") {
  const OpTest test = linear({.rows = 40, .out = 1, .in = 250, .rank = 1, .dropout = 0.3});
  for (const OpSet* ops : all_op_sets()) {
    INFO(ops->name());
    TestStream stream(*ops, 1, test.scratch(*ops));
    Tensors tensors = test.tensors;
    const auto fill = [&](const char* name, double x) {
      Tensor& t = tensors.at(name);
      for (int64_t r = 0; r < t.rows(); ++r) {
        for (int64_t i = 0; i < t.cols(); ++i) t.set(r, i, x);
      }
    };
    for (const char* name : {"x", "w_a", "w_b"}) fill(name, 1);
    fill("w", 0);
    const Tensors after = run_op(*ops, stream, tensors, test.forward);
    double sum = 0;
    for (int64_t t = 0; t < 40; ++t) sum += after.at("y").get(t, 0) / Run::kScale;
    CHECK(sum / (40 * 250) > 0.97);  // ten thousand draws: seven standard deviations
    CHECK(sum / (40 * 250) < 1.03);
    CHECK(after.at("y").get(0, 0) != after.at("y").get(1, 0));
  }
}

TEST_CASE("linear: bf16 products are products of rounded operands") {
  for (const OpSet* ops : all_op_sets()) {
    if (!ops->supports(DType::f32, Compute::bf16)) continue;
    INFO(ops->name());
    const OpTest test = linear({.rows = 4, .out = 4, .in = 64});
    TestStream stream(*ops, 1, test.scratch(*ops));
    const Tensors rounded = run_op(*ops, stream, test.tensors, test.forward, Compute::bf16);
    const Tensors exact = run_op(*ops, stream, test.tensors, test.forward, Compute::f32);
    CHECK(difference(rounded.at("y"), exact.at("y"), 1e-4) != "");
    CHECK(difference(rounded.at("y"), exact.at("y"), 2e-2) == "");
  }
}
