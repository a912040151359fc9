#include <catch2/catch_test_macros.hpp>

#include "op_test.h"
#include "ops/implementations.h"

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

TEST_CASE("back ends: every op and every bound of scratch has an implementation") {
  register_all_op_sets();
  for (const OpSet* ops : op_sets()) {
    CHECK(ops->all_ops().size() == 45);
    for (const AnyOp* op : ops->all_ops()) {
      INFO(op->name() << " on " << ops->name());
      CHECK_FALSE(op->name().empty());
      CHECK(op->is_there());
    }
  }
}

namespace {

int own_adds = 0;

/// Has one op of its own, for two rows alone; all else is the reference's.
class SomeOps final : public OpSet {
 public:
  SomeOps() {
    OpTable::add.add(
        "some",
        [](Stream&, ConstView a, ConstView b, View y) {
          ++own_adds;
          for (int64_t r = 0; r < y.rows; ++r) {
            for (int64_t c = 0; c < y.cols; ++c) {
              y.row<float>(r)[c] = a.row<float>(r)[c] + b.row<float>(r)[c];
            }
          }
        },
        [](ConstView, ConstView, View y) {
          return y.rows == 2 ? std::string() : std::string("not two rows");
        });
    cast.lacks("some", "no kernel yet");
    CHECK_FALSE(cast.is_there());
    add_reference_ops(*this);
    CHECK(cast.is_there());
  }
  std::string_view name() const override { return "some"; }
  bool supports(DType activations, Compute) const override { return activations == DType::f32; }
};

}  // namespace

TEST_CASE("back ends: what one lacks or declines, the next in the list does") {
  const SomeOps ops;
  TestStream stream;
  for (const int64_t rows : {2, 3}) {
    Tensor x = Tensor(DType::f32, rows, 4).fill_random("x"), y(DType::f32, rows, 4);
    Tensor rounded(DType::bf16, rows, 4);
    own_adds = 0;
    ops.add(stream, x.view(), x.view(), y.view());
    CHECK(own_adds == (rows == 2 ? 1 : 0));
    CHECK(y.get(1, 3) == 2 * x.get(1, 3));
    ops.cast(stream, x.view(), rounded.view());
    CHECK(std::abs(rounded.get(1, 3) - x.get(1, 3)) < 1e-2);
  }
  Tensor x = Tensor(DType::f32, 2, 4).fill(1), wide = Tensor(DType::f32, 2, 5).fill(1);
  own_adds = 0;
  CHECK_THROWS_AS(ops.add(stream, x.view(), x.view(), wide.view()), std::logic_error);
  CHECK(own_adds == 0);  // the check of shapes comes first
}

TEST_CASE("back ends: an op without an implementation is a bug that names it") {
  class NoOps final : public OpSet {
    std::string_view name() const override { return "none"; }
    bool supports(DType, Compute) const override { return true; }
  };
  const NoOps ops;
  TestStream stream;
  Tensor x = Tensor(DType::f32, 2, 4).fill(1);
  try {
    ops.clear(stream, x.view());
    FAIL("nothing was raised");
  } catch (const std::logic_error& error) {
    CHECK(std::string(error.what()).find("clear: no implementation takes it") != std::string::npos);
  }
  CHECK_THROWS_AS(ops.row_scratch(1, 1), std::logic_error);
}

TEST_CASE("implementations: each reason is said once") {
  std::vector<std::string> said;
  const Say say = [&](const std::string& line) { said.push_back(line); };
  for (int i = 0; i < 3; ++i) say_declined(say, "a test", "a reason");
  say_declined(say, "a test", "another");
  CHECK(said == std::vector<std::string>{"a test not used: a reason", "a test not used: another"});
}
