#include <cmath>
#include <utility>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

ScratchNeed scratch(const OpSet& ops) { return ops.row_scratch(700, 97); }

OpTest embedding(DType stored, int64_t vocabulary, int64_t width, const std::vector<double>& ids,
                 int64_t padding = -1) {
  OpTest test;
  const auto tokens = static_cast<int64_t>(ids.size());
  test.described("embedding", "tokens", tokens, "vocabulary", vocabulary, "width", width, "stored",
                 stored, "padding", padding);
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
  test.backward = [padding](const Run& r) {
    r.ops.embedding_backward(r.stream, r.view("ids"), r.view("dout"), padding, r.view("dtable"));
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
  for (int i = 0; i < 700; ++i) ids.push_back(i * 7 % 13);
  check_back_ends(embedding(DType::f32, 13, 97, ids));
}

TEST_CASE("embedding: the padding row gets no gradient from lookups") {
  check_back_ends(embedding(DType::f32, 11, 33, {4, 0, 10, 4, 4, 9, 0, 1, 4, 10}, 4));
  for_each_back_end(scratch, [](const OpSet& ops, Stream& stream) {
    const Tensor ids = Tensor(DType::i32, 1, 4).assign({1, 2, 1, 0});
    const Tensor dout = Tensor(DType::f32, 4, 1).assign({1, 2, 4, 8});
    Tensor gradient = Tensor(DType::f32, 3, 1).fill(0.5);
    ops.embedding_backward(stream, ids.view(), dout.view(), 1, gradient.view());
    CHECK(difference(gradient, Tensor(DType::f32, 3, 1).assign({8.5, 0.5, 2.5}), 0) == "");
  });
}

TEST_CASE("embedding: the padding token's row gets no gradient") {
  OpTest test = embedding(DType::f32, 5, 3, {4, 2, 0, 2, 4});
  test.backward = [](const Run& r) {
    r.ops.embedding_backward(r.stream, r.view("ids"), r.view("dout"), 2, r.view("dtable"));
  };
  check_back_ends(test);
  for_each_back_end(scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.backward);
    const Tensor &before = test.tensors.at("dtable"), &after = result.at("dtable");
    for (int64_t id = 0; id < 5; ++id) {
      INFO("token " << id);
      const bool changed = before.get(id, 0) != after.get(id, 0);
      CHECK(changed == (id == 0 || id == 4));
    }
  });
}

namespace {

OpTest noise_on(int64_t width, const std::vector<double>& offsets, int64_t tokens) {
  OpTest test;
  test.described("embedding_noise", "tokens", tokens, "width", width);
  test.integers("offsets", 1, static_cast<int64_t>(offsets.size()), offsets);
  test.random("x", tokens, width);
  test.scratch = scratch;
  test.forward = [](const Run& r) {
    r.ops.embedding_noise(r.stream, {0x123456789abcdef, 5}, r.view("offsets"), r.view("x"));
  };
  return test;
}

}  // namespace

TEST_CASE("embedding noise: every back end adds the same numbers") {
  check_back_ends(noise_on(7, {0, 3, 10}, 10));
  check_back_ends(noise_on(33, {0, 1, 1, 40, 41}, 44));  // an empty document, rows of none
  check_back_ends(noise_on(1100, {0, 700}, 700));
  check_back_ends(noise_on(5, {0}, 3));
}

TEST_CASE("embedding noise: uniform, of the size of NEFTune, and a function of key and place") {
  const int64_t tokens = 400, width = 64;
  const std::vector<double> offsets{0, 100, 400};
  const auto noise = [&](uint64_t key, double alpha) {
    Tensor found;
    for_each_back_end(scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensor documents = Tensor(DType::i32, 1, 3).assign(offsets);
      Tensor x = Tensor(DType::f32, tokens, width).fill(0);
      ops.embedding_noise(stream, {key, alpha}, documents.view(), x.view());
      stream.synchronize();
      found = x;
    });
    return found;
  };
  const Tensor first = noise(7, 10), again = noise(7, 10), other = noise(8, 10);
  const auto most_of = [&](int64_t begin, int64_t end, double& mean, double& square) {
    double most = 0;
    mean = square = 0;
    const auto n = static_cast<double>((end - begin) * width);
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t i = 0; i < width; ++i) {
        const double x = first.get(t, i);
        most = std::max(most, std::abs(x));
        mean += x / n;
        square += x * x / n;
      }
    }
    return most;
  };
  double mean = 0, square = 0;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 100}, {100, 400}}) {
    const double bound = 10 / std::sqrt(static_cast<double>((end - begin) * width));
    const double most = most_of(begin, end, mean, square);
    CHECK(most <= bound);
    CHECK(most > 0.99 * bound);
    CHECK(std::abs(mean) < 0.03 * bound);
    CHECK(std::abs(3 * square / (bound * bound) - 1) < 0.05);  // the variance of a uniform number
  }
  int64_t same = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      REQUIRE(first.get(t, i) == again.get(t, i));
      same += first.get(t, i) == other.get(t, i);
    }
  }
  CHECK(same < 5);
  CHECK(first.get(0, 0) != first.get(1, 0));
}
