#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ScratchNeed scratch(const OpSet& ops) { return ops.row_scratch(300, 160); }

/// Table of cos or sin of position * 10^(-2i/d), as models have it.
Tensor angles(bool sine, int64_t positions, int64_t half) {
  Tensor table(DType::f32, positions, half);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) *
                           std::pow(10.0, -static_cast<double>(i) / static_cast<double>(half));
      table.set(p, i, sine ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

OpTest rope(int64_t heads, int64_t half, const std::vector<double>& positions) {
  OpTest test;
  const auto tokens = static_cast<int64_t>(positions.size());
  test.described("rope", "tokens", tokens, "heads", heads, "head_dim", 2 * half);
  for (const char* name : {"x", "y", "dy", "dx"}) test.random(name, tokens, heads * 2 * half);
  test.integers("positions", 1, tokens, positions);
  test.tensors["cosine"] = angles(false, 12, half);
  test.tensors["sine"] = angles(true, 12, half);
  test.outputs = {"y"};
  test.inputs = {"x"};
  test.scratch = scratch;
  test.forward = [=](const Run& r) {
    r.copy("x", "y");
    r.ops.rope(r.stream, r.view("y"), heads, r.view("positions"), r.view("cosine"), r.view("sine"),
               false);
  };
  test.backward = [=](const Run& r) {
    r.copy("dy", "dx");
    r.ops.rope(r.stream, r.view("dx"), heads, r.view("positions"), r.view("cosine"), r.view("sine"),
               true);
  };
  return test;
}

}  // namespace

TEST_CASE("rope: values and gradients") {
  check_op(rope(3, 5, {0, 7, 2, 11, 0, 1}));
  check_op(rope(1, 1, {3}));
  std::vector<double> positions;
  for (int i = 0; i < 300; ++i) positions.push_back(i % 12);
  check_back_ends(rope(4, 20, positions));
}

TEST_CASE("rope: the first half turns towards the second, by the token's position") {
  for_each_back_end(scratch, [](const OpSet& ops, Stream& stream) {
    OpTest test = rope(1, 1, {2, 0});
    test.tensors.at("x").assign({1, 0, 1, 0});
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    const Tensor expected = Tensor(DType::f64, 2, 2).assign({std::cos(2.0), std::sin(2.0), 1, 0});
    CHECK(difference(result.at("y"), expected, 1e-6) == "");
  });
}
