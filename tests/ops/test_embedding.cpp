#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ScratchNeed scratch(const OpSet& ops) { return ops.row_scratch(300, 33); }

OpTest embedding(DType stored, int64_t vocabulary, int64_t width, const std::vector<double>& ids) {
  OpTest test;
  const auto tokens = static_cast<int64_t>(ids.size());
  test.integers("ids", 1, tokens, ids);
  test.random("table", stored, vocabulary, width);
  test.random("out", tokens, width);
  test.random("dout", tokens, width);
  test.random("dtable", vocabulary, width);
  test.outputs = {"out"};
  test.inputs = {"table"};
  test.scratch = scratch;
  test.forward = [](const Run& r) {
    r.ops.embedding_forward(r.stream, r.view("ids"), r.view("table"), r.view("out"));
  };
  test.backward = [](const Run& r) {
    r.ops.embedding_backward(r.stream, r.view("ids"), r.view("dout"), r.view("dtable"));
  };
  return test;
}

}  // namespace

TEST_CASE("embedding: rows of the table, gradients of repeated tokens added") {
  const std::vector<double> ids = {4, 0, 10, 4, 4, 9, 0, 1, 4, 10};
  check_op(embedding(DType::f32, 11, 7, ids));
  check_op(embedding(DType::bf16, 11, 33, ids));
  check_back_ends(embedding(DType::f16, 11, 33, ids));
  check_op(embedding(DType::f32, 1, 1, {0}));
}

TEST_CASE("embedding: many tokens") {
  std::vector<double> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(i * 7 % 13);
  check_back_ends(embedding(DType::f32, 13, 33, ids));
}
