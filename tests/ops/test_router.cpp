#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

OpTest router(int64_t tokens, int64_t experts, int64_t k, bool normalize, bool auxiliary) {
  OpTest test;
  test.described("router", "tokens", tokens, "experts", experts, "chosen", k, "normalize",
                 normalize, "auxiliary", auxiliary);
  test.random("logits", tokens, experts, 3);
  test.random("probs", tokens, experts);
  test.integers("choice", tokens, k, std::vector<double>(static_cast<size_t>(tokens * k), -1));
  test.random("weight", tokens, k);
  test.random("dweight", tokens, k);
  test.random("dlogits", tokens, experts);
  if (auxiliary) test.random("dprobs", DType::f64, 1, experts);
  test.outputs = {"weight"};
  if (auxiliary) test.outputs.push_back("probs");
  test.inputs = {"logits"};
  test.scratch = [=](const OpSet& ops) { return ops.row_scratch(tokens, experts); };
  test.forward = [=](const Run& r) {
    r.ops.router_forward(r.stream, r.view("logits"), normalize, r.view("probs"), r.view("choice"),
                         r.view("weight"));
  };
  test.backward = [=](const Run& r) {
    r.ops.router_backward(r.stream, r.view("dweight"), r.view("probs"), r.view("choice"), normalize,
                          r.view("dprobs"), r.view("dlogits"));
  };
  const double matrix = 4.0 * static_cast<double>(tokens * experts);
  test.timed = {{"forward", test.forward, 0, 2 * matrix},
                {"backward", test.backward, 0, 2 * matrix}};
  return test;
}

const bool added =
    add_perf_cases({{[] { return router(4096, 128, 8, true, true); }, Compute::f32}});

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.push_back(tensor.get(i / tensor.cols(), i % tensor.cols()));
  }
  return result;
}

}  // namespace

TEST_CASE("router: every k, normalized or not, with and without auxiliary loss") {
  for (const bool normalize : {false, true}) {
    for (const bool auxiliary : {false, true}) {
      for (int64_t k = 1; k <= 5; ++k) {
        INFO("k " << k << ", normalize " << normalize << ", auxiliary " << auxiliary);
        if (k == 1 && normalize && !auxiliary) continue;  // no gradient, see below
        check_op(router(5, 5, k, normalize, auxiliary));
      }
      check_back_ends(router(700, 17, 4, normalize, auxiliary));
    }
  }
  check_back_ends(router(1, 2, 1, true, true));
  check_back_ends(router(3, 128, 8, true, true));
}

TEST_CASE("router: the weight of a single normalized choice is one, whatever the logits are") {
  const OpTest test = router(5, 5, 1, true, false);
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    Tensors result = run_op(ops, stream, test.tensors, test.forward);
    result = run_op(ops, stream, result, test.backward);
    for (int64_t t = 0; t < 5; ++t) {
      CHECK(result.at("weight").get(t, 0) == 1);
      for (int64_t e = 0; e < 5; ++e) CHECK(std::abs(result.at("dlogits").get(t, e)) < 1e-6);
    }
  });
}

TEST_CASE("router: the largest first, the lowest index on ties") {
  OpTest test = router(3, 5, 3, true, false);
  test.tensors.at("logits").assign({1, 1, 1, 1, 1,  //
                                    0, 2, 2, 1, 2,  //
                                    -1, 0, 3, 0, 7});
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    CHECK(elements(result.at("choice")) == std::vector<double>{0, 1, 2, 1, 2, 4, 4, 2, 1});
    for (int64_t j = 0; j < 3; ++j) {
      CHECK(std::abs(result.at("weight").get(0, j) - 1.0 / 3) < 1e-6);
      CHECK(std::abs(result.at("probs").get(0, j) - 0.2) < 1e-6);
    }
  });
}

TEST_CASE("router: choices are different experts even where logits are not numbers") {
  OpTest test = router(2, 40, 8, true, false);
  for (int64_t e = 0; e < 40; ++e) test.tensors.at("logits").set(1, e, std::nan(""));
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    for (int64_t t = 0; t < 2; ++t) {
      std::vector<bool> taken(40);
      for (int64_t j = 0; j < 8; ++j) {
        const auto e = static_cast<size_t>(result.at("choice").get(t, j));
        REQUIRE(e < 40);
        CHECK(!taken[e]);
        taken[e] = true;
      }
    }
  });
}

TEST_CASE("router: weights are probabilities, or sum to one") {
  for (const bool normalize : {false, true}) {
    const OpTest test = router(7, 6, 2, normalize, false);
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors r = run_op(ops, stream, test.tensors, test.forward);
      for (int64_t t = 0; t < 7; ++t) {
        const auto prob = [&](int64_t j) {
          return r.at("probs").get(t, static_cast<int64_t>(r.at("choice").get(t, j)));
        };
        const double divisor = normalize ? prob(0) + prob(1) : 1;
        CHECK(std::abs(r.at("weight").get(t, 0) - prob(0) / divisor) < 1e-6);
        CHECK(std::abs(r.at("weight").get(t, 1) - prob(1) / divisor) < 1e-6);
      }
    });
  }
}

TEST_CASE("router: extreme logits stay finite") {
  OpTest test = router(2, 4, 2, true, false);
  test.tensors.at("logits").assign({1000, -1000, 0, 999, -3e38, -3e38, -3e38, -3e38});
  check_back_ends(test);
}

TEST_CASE("router: sums of the auxiliary loss") {
  for (const int64_t tokens : {1, 6, 300}) {
    const int64_t k = 2, experts = 5;
    OpTest test;
    std::vector<double> choice;
    for (int64_t i = 0; i < tokens; ++i) {
      const double first = static_cast<double>(i * i % experts);
      choice.insert(choice.end(), {first, first > 0 ? first - 1 : 3});
    }
    test.random("probs", tokens, experts);
    test.integers("choice", tokens, k, choice);
    test.random("counts", DType::f64, 1, experts);
    test.random("sums", DType::f64, 1, experts);
    test.scratch = [=](const OpSet& ops) { return ops.row_scratch(tokens, experts); };
    test.forward = [](const Run& r) {
      r.ops.router_sums(r.stream, r.view("probs"), r.view("choice"), r.view("counts"),
                        r.view("sums"));
    };
    check_back_ends(test);
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors result = run_op(ops, stream, test.tensors, test.forward);
      for (int64_t e = 0; e < experts; ++e) {
        double count = 0, sum = 0;
        for (const double c : choice) count += c == static_cast<double>(e);
        for (int64_t t = 0; t < tokens; ++t) sum += test.tensors.at("probs").get(t, e);
        CHECK(result.at("counts").get(0, e) == count);
        CHECK(std::abs(result.at("sums").get(0, e) - sum) < 1e-10);
      }
    });
  }
}

TEST_CASE("router: z-loss") {
  for (const auto& shape : {std::pair<int64_t, int64_t>{5, 4}, {1, 1}, {300, 130}}) {
    const int64_t tokens = shape.first, experts = shape.second;
    OpTest test;
    test.random("logits", tokens, experts, 3);
    test.random("probs", tokens, experts);
    test.integers("choice", tokens, 1, std::vector<double>(static_cast<size_t>(tokens), -1));
    test.random("weight", tokens, 1);
    test.random("log_sum", tokens, 1);
    test.random("squares", DType::f64, 1, 1);
    test.random("dlogits", tokens, experts);
    test.scratch = [=](const OpSet& ops) { return ops.row_scratch(tokens, experts); };
    const double scale = 0.25;
    const auto run = [&](const Run& r) {
      r.ops.router_forward(r.stream, r.view("logits"), false, r.view("probs"), r.view("choice"),
                           r.view("weight"));
      r.ops.router_z_forward(r.stream, r.view("logits"), r.view("log_sum"), r.view("squares"));
      r.ops.router_z_backward(r.stream, r.view("log_sum"), r.view("probs"), scale,
                              r.view("dlogits"));
    };
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors before = test.tensors;
      const Tensors result = run_op(ops, stream, before, run);
      double squares = 0;
      for (int64_t t = 0; t < tokens; ++t) {
        double sum = 0;
        for (int64_t e = 0; e < experts; ++e) sum += std::exp(before.at("logits").get(t, e));
        const double log_sum = std::log(sum);
        squares += log_sum * log_sum;
        CHECK(std::abs(result.at("log_sum").get(t, 0) - log_sum) < 1e-5);
        for (int64_t e = 0; e < experts; ++e) {
          const double expected =
              before.at("dlogits").get(t, e) +
              2 * scale * log_sum * std::exp(before.at("logits").get(t, e)) / sum;
          CHECK(std::abs(result.at("dlogits").get(t, e) - expected) < 1e-5);
        }
      }
      CHECK(std::abs(result.at("squares").get(0, 0) - squares) < 1e-5 * (1 + squares));
    });
  }
}
