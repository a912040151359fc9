#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr double kEps = 1e-3;

OpTest rmsnorm(int64_t rows, int64_t width, DType stored, bool trained = true) {
  OpTest test;
  test.described("rmsnorm", "rows", rows, "width", width, "stored", stored, "trained", trained);
  test.random("x", rows, width);
  test.random("weight", stored, 1, width);
  test.random("y", rows, width);
  test.random("rstd", 1, rows);
  test.random("dy", rows, width);
  test.random("dx", rows, width);
  if (trained) test.random("dweight", 1, width);
  test.outputs = {"y"};
  test.inputs = trained ? std::vector<std::string>{"x", "weight"} : std::vector<std::string>{"x"};
  test.scratch = [=](const OpSet& ops) { return ops.row_scratch(rows, width); };
  test.forward = [](const Run& r) {
    r.ops.rmsnorm_forward(r.stream, r.view("x"), r.view("weight"), kEps, r.view("y"),
                          r.view("rstd"));
  };
  test.backward = [=](const Run& r) {
    r.ops.rmsnorm_backward(r.stream, r.view("dy"), r.view("x"), r.view("weight"), r.view("rstd"),
                           r.view("dx"), r.view("dweight"));
  };
  const double matrix = 4.0 * static_cast<double>(rows * width);
  test.timed = {{"forward", test.forward, 0, 2 * matrix},
                {"backward", test.backward, 0, 3 * matrix}};
  return test;
}

const bool added =
    add_perf_cases({{[] { return rmsnorm(4096, 2048, DType::bf16); }, Compute::f32}});

}  // namespace

TEST_CASE("rmsnorm: values and gradients") {
  check_op(rmsnorm(4, 7, DType::f32));
  check_op(rmsnorm(1, 1, DType::f32));
  check_back_ends(rmsnorm(13, 33, DType::bf16));
  check_back_ends(rmsnorm(13, 33, DType::f16));
  check_back_ends(rmsnorm(301, 257, DType::f32));  // many tiles
}

TEST_CASE("rmsnorm: a frozen weight has an empty gradient") {
  check_op(rmsnorm(5, 9, DType::f32, false));
}

TEST_CASE("rmsnorm: in place") {
  OpTest test = rmsnorm(9, 33, DType::f32);
  test.forward = [](const Run& r) {
    r.copy("x", "y");
    r.ops.rmsnorm_forward(r.stream, r.view("y"), r.view("weight"), kEps, r.view("y"),
                          r.view("rstd"));
  };
  test.backward = [](const Run& r) {
    r.copy("dy", "dx");
    r.ops.rmsnorm_backward(r.stream, r.view("dx"), r.view("x"), r.view("weight"), r.view("rstd"),
                           r.view("dx"), r.view("dweight"));
  };
  check_op(test);
}

TEST_CASE("rmsnorm: eps is inside the root") {
  for_each_back_end(
      [](const OpSet& ops) { return ops.row_scratch(1, 2); },
      [](const OpSet& ops, Stream& stream) {
        OpTest test = rmsnorm(1, 2, DType::f32);
        test.tensors.at("x").assign({0.03, -0.01});  // mean of squares 5e-4
        test.tensors.at("weight").assign({2, 1});
        const Tensors result = run_op(ops, stream, test.tensors, test.forward);
        const double rstd = 1 / std::sqrt(5e-4 + kEps);
        CHECK(difference(result.at("rstd"), Tensor(DType::f64, 1, 1).fill(rstd), 1e-6) == "");
        CHECK(difference(result.at("y"),
                         Tensor(DType::f64, 1, 2).assign({0.06 * rstd, -0.01 * rstd}), 1e-6) == "");
      });
}
