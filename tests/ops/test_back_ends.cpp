#include <catch2/catch_test_macros.hpp>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("back ends: found by name") {
  register_all_op_sets();
  CHECK(&find_op_set("reference") == &reference_ops());
  CHECK_THROWS_AS(find_op_set("abacus"), Error);
  CHECK(reference_ops().supports(DType::f64, Compute::f64));
  CHECK(reference_ops().supports(DType::f32, Compute::bf16));
  for (const OpSet* ops : all_op_sets()) CHECK(ops->supports(DType::f32, Compute::f32));
}

TEST_CASE("back ends: a wrong shape is a bug, not a wrong result") {
  for_each_back_end({}, [](const OpSet& ops, Stream& stream) {
    Tensor x = Tensor(DType::f32, 3, 4).fill(1), w = Tensor(DType::f32, 2, 5).fill(1);
    Tensor y(DType::f32, 3, 2);
    CHECK_THROWS_AS(ops.linear_forward(stream, x.view(), {w.view(), {}, Compute::f32}, y.view()),
                    std::logic_error);
    CHECK_THROWS_AS(ops.add(stream, x.view(), w.view(), y.view()), std::logic_error);
    CHECK_THROWS_AS(ops.swiglu_forward(stream, x.view(), x.view(), y.view()), std::logic_error);
  });
}
