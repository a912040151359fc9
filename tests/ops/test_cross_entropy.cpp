#include <optional>

#include "base/sanitized.h"
#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Case {
  int64_t width, vocabulary;
  std::vector<double> labels;
  DType stored = DType::f32;
  bool trained = true;
  bool gradients = true;
  int64_t rank = 0;
  double dropout = 0;
  std::optional<int64_t> most_trained = {};
};

OpTest cross_entropy(const Case& c) {
  OpTest test;
  const auto tokens = static_cast<int64_t>(c.labels.size());
  test.described("cross_entropy", "tokens", tokens, "width", c.width, "vocabulary", c.vocabulary,
                 "stored", c.stored, "trained", c.trained, "rank", c.rank, "dropout", c.dropout);
  test.random("x", tokens, c.width);
  test.random("head", c.stored, c.vocabulary, c.width);
  test.integers("labels", 1, tokens, c.labels);
  test.random("loss", DType::f64, 1, 1);
  test.random("dloss", DType::f64, 1, 1).fill(0.37);  // the scale
  if (c.gradients) test.random("dx", tokens, c.width);
  if (c.gradients && c.trained) test.random("dhead", c.vocabulary, c.width);
  test.outputs = {"loss"};
  test.inputs = {"x"};
  if (c.trained) test.inputs.push_back("head");
  test.products = true;
  test.bf16_tolerance = 1e-3;  // the gradients of logits are rounded as operands
  test.scratch = [=](const OpSet& ops) {
    return ops.cross_entropy_scratch(tokens, c.width, c.vocabulary, c.rank);
  };
  if (c.rank > 0) {
    test.low_rank("head", c.vocabulary, c.width, c.rank, DType::f32, true);
    test.bf16_tolerance = 2e-2;  // so is the product with A
  }
  const auto head = [=](const Run& r) { return r.linear("head", "", {c.dropout, 99, {}}); };
  const auto labels = [=](const Run& r) {
    const ConstView ids = r.view("labels");
    return Labels(ids, c.most_trained.value_or(ids.cols));
  };
  test.forward = [=](const Run& r) {
    r.ops.cross_entropy(r.stream, r.view("x"), head(r), labels(r), 1, r.view("loss"), {}, {});
  };
  test.backward = [=](const Run& r) {
    r.ops.cross_entropy(r.stream, r.view("x"), head(r), labels(r), r["dloss"].get(0, 0),
                        r.view("loss"), r.view("dx"), r.gradient("head"));
  };
  const double product = 2.0 * static_cast<double>(tokens * c.width * c.vocabulary);
  test.timed = {{"loss", test.forward, product}, {"with gradients", test.backward, 3 * product}};
  return test;
}

std::vector<double> some_labels(int64_t tokens, int64_t vocabulary) {
  std::vector<double> labels;
  for (int64_t t = 0; t < tokens; ++t) {
    labels.push_back(t % 5 == 3 ? -100 : static_cast<double>(t * t % vocabulary));
  }
  return labels;
}

const bool added = [] {
  for (const auto& [stored, compute] :
       {std::pair{DType::f32, Compute::f32}, {DType::bf16, Compute::bf16}}) {
    const Case c{
        .width = 1024, .vocabulary = 32768, .labels = some_labels(256, 32768), .stored = stored};
    add_perf_cases({{[c] { return cross_entropy(c); }, compute}});
  }
  const Case small{.width = 256, .vocabulary = 4096, .labels = some_labels(64, 4096)};
  add_perf_cases({{[small] { return cross_entropy(small); }, Compute::f32}});
  return true;
}();

}  // namespace

TEST_CASE("cross-entropy: loss and gradients, rows that are not trained left out") {
  check_op(cross_entropy({.width = 4, .vocabulary = 7, .labels = {3, -100, 0, 6, 3}}));
  check_op(cross_entropy({.width = 4, .vocabulary = 7, .labels = {3, 1}, .trained = false}));
  for (const double dropout : {0.0, 0.4}) {
    check_op(cross_entropy({.width = 4,
                            .vocabulary = 7,
                            .labels = {3, -100, 0, 6, 3},
                            .trained = false,
                            .rank = 2,
                            .dropout = dropout}));
    check_back_ends(cross_entropy({.width = 330,
                                   .vocabulary = 30,
                                   .labels = some_labels(270, 30),
                                   .rank = 3,
                                   .dropout = dropout}));
  }
  check_back_ends(cross_entropy({.width = 1, .vocabulary = 2, .labels = {1}}));
  check_back_ends(
      cross_entropy({.width = 4, .vocabulary = 7, .labels = {3, -100}, .gradients = false}));
}

TEST_CASE("cross-entropy: odd sizes, every stored type, several chunks") {
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    INFO("stored " << name_of(stored));
    check_back_ends(cross_entropy(
        {.width = 33, .vocabulary = 57, .labels = some_labels(9, 57), .stored = stored}));
  }
  check_back_ends(cross_entropy({.width = 9, .vocabulary = 1103, .labels = some_labels(20, 1103)}));
  check_back_ends(cross_entropy({.width = 17, .vocabulary = 61, .labels = some_labels(600, 61)}));
  if (kSanitized) return;  // thousands of rows, for a minute
  check_back_ends(cross_entropy(
      {.width = 3, .vocabulary = 5, .labels = some_labels(4300, 5), .rank = 2, .dropout = 0.4}));
}

TEST_CASE("cross-entropy: nothing trained") {
  const OpTest test = cross_entropy({.width = 5, .vocabulary = 9, .labels = {-100, -100, -100}});
  check_back_ends(test);
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.backward);
    CHECK(result.at("loss").get(0, 0) == 0);
    CHECK(difference(result.at("dx"), Tensor(DType::f32, 3, 5).fill(0), 0) == "");
    CHECK(difference(result.at("dhead"), test.tensors.at("dhead"), 0) == "");
  });
}

TEST_CASE("cross-entropy: how few rows are trained is known beforehand") {
  for (const int64_t trained : {0, 1, 128, 129, 600}) {
    std::vector<double> labels(600, -100);
    for (int64_t i = 0; i < trained; ++i) {
      labels[static_cast<size_t>(599 - i * (599 / std::max<int64_t>(1, trained - 1)))] =
          static_cast<double>(i % 31);
    }
    for (const int64_t more : {0, 40}) {
      if (kSanitized && (more > 0) != (trained % 2 > 0)) continue;
      INFO(trained << " trained, " << more << " more said");
      check_back_ends(cross_entropy({.width = 12,
                                     .vocabulary = 31,
                                     .labels = labels,
                                     .rank = more > 0 ? 2 : 0,
                                     .dropout = more > 0 ? 0.4 : 0,
                                     .most_trained = trained + more}));
    }
  }
}

TEST_CASE("cross-entropy: more trained rows than said are not passed over in silence") {
  for (const int64_t said : {0, 128}) {
    const OpTest test = cross_entropy(
        {.width = 3, .vocabulary = 7, .labels = std::vector<double>(400, 5), .most_trained = said});
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      try {
        const Tensors after = run_op(ops, stream, test.tensors, test.backward);
        CHECK(std::isnan(after.at("loss").get(0, 0)));
        CHECK(std::isnan(after.at("dx").get(0, 0)));
      } catch (const std::logic_error&) {  // where the host reads the labels
      }
    });
  }
}

TEST_CASE("cross-entropy: equal logits cost log V, large ones stay finite") {
  OpTest equal = cross_entropy({.width = 3, .vocabulary = 11, .labels = {4, 2}});
  equal.tensors.at("head").fill(0.5);
  for_each_back_end(equal.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, equal.tensors, equal.forward);
    CHECK(std::abs(result.at("loss").get(0, 0) - 2 * std::log(11.0)) < 1e-5);
  });
  OpTest large = cross_entropy({.width = 3, .vocabulary = 11, .labels = {4, 2}});
  large.tensors.at("x").fill_random("x", 1000);
  large.bf16_tolerance = 1e-2;
  check_back_ends(large);
}

// The label's logit is minus infinity: so the loss is infinite, and all gradients are finite.
TEST_CASE("cross-entropy: a loss that is not finite shows in the gradients") {
  for (const bool trained : {true, false}) {
    OpTest test =
        cross_entropy({.width = 2, .vocabulary = 3, .labels = {0, 1}, .trained = trained});
    test.tensors.at("head").assign({1, 0, -1e30, 0, 0, 0});
    for (const double first : {1.0, 1e30}) {
      test.tensors.at("x").assign({1, 1, first, 1});
      if (trained) test.tensors.at("dhead").fill(0);
      const bool infinite = first > 1;
      for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
        const Tensors after = run_op(ops, stream, test.tensors, test.backward);
        CHECK(std::isfinite(after.at("loss").get(0, 0)) == !infinite);
        for (const char* name : {"dx", "dhead"}) {
          if (!trained && name == std::string("dhead")) continue;
          const Tensor& gradient = after.at(name);
          for (int64_t i = 0; i < gradient.size(); ++i) {
            INFO(name << " " << i);
            const double x = gradient.get(i / gradient.cols(), i % gradient.cols());
            CHECK(std::isnan(x) == (infinite && i == 0));
          }
        }
      });
    }
  }
}
