#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ScratchNeed scratch(const OpSet& ops) { return ops.row_scratch(300, 200); }

OpTest swiglu(int64_t rows, int64_t width, double scale) {
  OpTest test;
  test.described("swiglu", "rows", rows, "width", width, "scale", scale);
  for (const char* name : {"gate", "up"}) test.random(name, rows, width, scale);
  for (const char* name : {"h", "dh", "dgate", "dup", "again"}) test.random(name, rows, width);
  test.outputs = {"h"};
  test.inputs = {"gate", "up"};
  test.scratch = scratch;
  test.forward = [](const Run& r) {
    r.ops.swiglu_forward(r.stream, r.view("gate"), r.view("up"), r.view("h"));
  };
  test.backward = [](const Run& r) {
    r.copy("gate", "dgate");
    r.copy("up", "dup");
    r.ops.swiglu_backward(r.stream, r.view("dh"), r.view("dgate"), r.view("dup"), r.view("again"));
  };
  test.timed = {{"forward", test.forward, 0, 12.0 * static_cast<double>(rows * width)}};
  return test;
}

const bool added = add_perf_cases({{[] { return swiglu(4096, 768, 1); }, Compute::f32}});

OpTest sigmoid_gate(int64_t rows, int64_t width, double scale) {
  OpTest test;
  test.described("sigmoid_gate", "rows", rows, "width", width, "scale", scale);
  test.random("logits", 1, rows, scale);
  for (const char* name : {"x", "y", "dy", "dx"}) test.random(name, rows, width);
  test.random("dlogits", 1, rows);
  test.outputs = {"y"};
  test.inputs = {"logits", "x"};
  test.scratch = scratch;
  test.forward = [](const Run& r) {
    r.ops.sigmoid_gate_forward(r.stream, r.view("logits"), r.view("x"), r.view("y"));
  };
  test.backward = [](const Run& r) {
    r.copy("dy", "dx");
    r.ops.sigmoid_gate_backward(r.stream, r.view("dx"), r.view("logits"), r.view("y"),
                                r.view("dlogits"), r.view("dx"));
  };
  return test;
}

/// About half of the elements are clamped.
OpTest clamp(int64_t rows, int64_t width, double limit) {
  OpTest test;
  test.described("clamp", "rows", rows, "width", width, "limit", limit);
  for (const char* name : {"x", "y", "dy", "dx"}) test.random(name, rows, width);
  test.outputs = {"y"};
  test.inputs = {"x"};
  test.scratch = scratch;
  test.forward = [=](const Run& r) {
    r.copy("x", "y");
    r.ops.clamp_forward(r.stream, r.view("y"), limit, r.view("y"));
  };
  test.backward = [=](const Run& r) {
    r.copy("dy", "dx");
    r.ops.clamp_backward(r.stream, r.view("dx"), r.view("x"), limit, r.view("dx"));
  };
  return test;
}

}  // namespace

TEST_CASE("swiglu: values and gradients") {
  check_op(swiglu(3, 5, 2));
  check_op(swiglu(1, 1, 1));
  check_back_ends(swiglu(0, 4, 1));
  check_back_ends(swiglu(300, 197, 4));
  check_back_ends(swiglu(4, 33, 100));  // exp over- and underflows in f32
}

TEST_CASE("swiglu: backward gives h again") {
  const OpTest test = swiglu(4, 9, 3);
  for_each_back_end(scratch, [&](const OpSet& ops, Stream& stream) {
    Tensors result = run_op(ops, stream, test.tensors, test.forward);
    result = run_op(ops, stream, result, test.backward);
    CHECK(difference(result.at("again"), result.at("h"), 1e-6) == "");
  });
}

TEST_CASE("sigmoid gate: values and gradients") {
  check_op(sigmoid_gate(5, 3, 2));
  check_op(sigmoid_gate(1, 1, 1));
  check_back_ends(sigmoid_gate(0, 4, 1));
  check_back_ends(sigmoid_gate(300, 197, 4));
  check_back_ends(sigmoid_gate(7, 33, 100));  // the gate all open or all shut
}

TEST_CASE("clamp: values and gradients") {
  check_op(clamp(4, 5, 0.7));
  check_op(clamp(3, 3, 100));
  check_back_ends(clamp(0, 4, 1));
  check_back_ends(clamp(300, 197, 0.7));
}

TEST_CASE("clamp: an element at the limit passes its gradient, as in torch") {
  for_each_back_end(scratch, [&](const OpSet& ops, Stream& stream) {
    const std::vector<double> x = {-3, -2, -1.5, 0, 2, 2.5}, y = {-2, -2, -1.5, 0, 2, 2};
    const std::vector<double> passed = {0, 1, 1, 1, 1, 0};
    Tensor in(DType::f32, 1, 6), out(DType::f32, 1, 6), ones(DType::f32, 1, 6);
    for (int64_t i = 0; i < 6; ++i) {
      in.set(0, i, x[static_cast<size_t>(i)]);
      ones.set(0, i, 1);
    }
    ops.clamp_forward(stream, in.view(), 2, out.view());
    for (int64_t i = 0; i < 6; ++i) CHECK(out.get(0, i) == y[static_cast<size_t>(i)]);
    ops.clamp_backward(stream, ones.view(), in.view(), 2, out.view());
    for (int64_t i = 0; i < 6; ++i) CHECK(out.get(0, i) == passed[static_cast<size_t>(i)]);
  });
}

TEST_CASE("add: also onto an operand") {
  for (const int64_t rows : {1, 7, 300}) {
    OpTest test;
    for (const char* name : {"a", "b", "y"}) test.random(name, rows, 133);
    test.scratch = scratch;
    for (const char* into : {"y", "a", "b"}) {
      test.forward = [=](const Run& r) {
        r.ops.add(r.stream, r.view("a"), r.view("b"), r.view(into));
      };
      check_back_ends(test);
    }
  }
}

TEST_CASE("cast: rounds to nearest, ties to even") {
  for (const DType from : {DType::f32, DType::bf16, DType::f16}) {
    for (const DType to : {DType::f32, DType::bf16, DType::f16}) {
      for_each_back_end(scratch, [&](const OpSet& ops, Stream& stream) {
        INFO(name_of(from) << " to " << name_of(to));
        const Tensor x = Tensor(from, 137, 133, 5).fill_random("x", 3);
        Tensor y(to, 137, 133, 2);
        ops.cast(stream, x.view(), y.view());
        CHECK(difference(y, x.as(to, 0), 0) == "");
        CHECK(y.canaries_alive());
      });
    }
  }
}

TEST_CASE("clear: every type, rows apart and together, no more than the view") {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32}) {
    for (const auto& shape : {std::pair<int64_t, int64_t>{1, 1}, {5, 33}, {2, 40000}, {0, 4}}) {
      for (const int64_t padding : {0, 3}) {
        INFO(name_of(type) << ", " << shape.first << " x " << shape.second);
        for_each_back_end({}, [&](const OpSet& ops, Stream& stream) {
          Tensor x(type, shape.first, shape.second, padding);
          x.fill(7);
          ops.clear(stream, x.view());
          CHECK(difference(x, Tensor(type, shape.first, shape.second).fill(0), 0) == "");
          CHECK(x.canaries_alive());
        });
      }
    }
  }
}
