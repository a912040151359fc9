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
};

OpTest linear(const Case& c) {
  OpTest test;
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
  test.scratch = [=](const OpSet& ops) { return ops.linear_scratch(c.rows, c.out, c.in); };
  test.forward = [](const Run& r) {
    r.ops.linear_forward(r.stream, r.view("x"), r.linear("w", "b"), r.view("y"));
  };
  test.backward = [=](const Run& r) {
    r.ops.linear_dgrad(r.stream, r.view("dy"), r.linear("w", "b"), r.view("dx"), c.accumulate);
    r.ops.linear_wgrad(r.stream, r.view("dy"), r.view("x"), r.compute, r.view("dw"), r.view("db"));
  };
  return test;
}

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

TEST_CASE("linear: no rows, and a frozen weight") {
  check_back_ends(linear({.rows = 0, .out = 5, .in = 3, .bias = true}));
  check_back_ends(linear({.rows = 9, .out = 5, .in = 3, .bias = true, .trained = false}));
}

TEST_CASE("linear: bf16 products are products of rounded operands") {
  for (const OpSet* ops : all_op_sets()) {
    if (!ops->supports(DType::f32, Compute::bf16)) continue;
    INFO(ops->name());
    const OpTest test = linear({.rows = 4, .out = 4, .in = 64});
    TestStream stream(1, test.scratch(*ops));
    const Tensors rounded = run_op(*ops, stream, test.tensors, test.forward, Compute::bf16);
    const Tensors exact = run_op(*ops, stream, test.tensors, test.forward, Compute::f32);
    CHECK(difference(rounded.at("y"), exact.at("y"), 1e-4) != "");
    CHECK(difference(rounded.at("y"), exact.at("y"), 2e-2) == "");
  }
}
