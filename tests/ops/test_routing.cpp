#include <cmath>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Choices of `tokens` tokens among `experts`; the last expert is never chosen unless it must be.
std::vector<double> choices(int64_t tokens, int64_t k, int64_t experts) {
  std::vector<double> result;
  const int64_t used = std::max(k, experts - 1);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = 0; j < k; ++j) result.push_back(static_cast<double>((t * t + 3 * j) % used));
  }
  return result;
}

OpTest routed(int64_t tokens, int64_t k, int64_t experts, int64_t width,
              const std::vector<double>& choice) {
  OpTest test;
  test.described("routing", "tokens", tokens, "chosen", k, "experts", experts, "width", width);
  const int64_t rows = tokens * k;
  const auto nothing = [](int64_t n) { return std::vector<double>(static_cast<size_t>(n), -1); };
  test.integers("choice", tokens, k, choice);
  test.integers("offsets", 1, experts + 1, nothing(experts + 1));
  test.integers("source", 1, rows, nothing(rows));
  test.integers("row_of", tokens, k, nothing(rows));
  test.scratch = [=](const OpSet& ops) { return ops.row_scratch(rows, std::max(width, experts)); };
  test.forward = [](const Run& r) {
    r.ops.route(r.stream, r.view("choice"), r.view("position"), r.view("offsets"), r.view("source"),
                r.view("row_of"));
  };
  return test;
}

RoutingView routing(const Run& r) {
  return {r.view("offsets"), r.view("source"), r.view("row_of")};
}

OpTest with(OpTest test, const Body& then) {
  test.forward = [route = test.forward, then](const Run& r) {
    route(r);
    then(r);
  };
  return test;
}

}  // namespace

TEST_CASE("route: sorted by expert, tokens in order") {
  OpTest test = routed(4, 2, 4, 1, {3, 0, 0, 1, 3, 1, 0, 3});
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    CHECK(difference(result.at("offsets"), Tensor(DType::i32, 1, 5).assign({0, 3, 5, 5, 8}), 0) ==
          "");
    CHECK(difference(result.at("source"), Tensor(DType::i32, 1, 8).assign({1, 2, 6, 3, 5, 0, 4, 7}),
                     0) == "");
    CHECK(difference(result.at("row_of"), Tensor(DType::i32, 4, 2).assign({5, 0, 1, 3, 6, 4, 2, 7}),
                     0) == "");
  });
}

TEST_CASE("route: empty experts, one token, one expert, many tokens") {
  check_back_ends(routed(1, 1, 1, 1, {0}));
  check_back_ends(routed(1, 3, 7, 1, {6, 0, 3}));
  check_back_ends(routed(9, 1, 5, 1, std::vector<double>(9, 2)));
  check_back_ends(routed(5, 3, 3, 1, choices(5, 3, 3)));
  check_back_ends(routed(300, 4, 17, 1, choices(300, 4, 17)));
}

TEST_CASE("route: experts in a given order") {
  OpTest test = routed(4, 2, 4, 1, {3, 0, 0, 1, 3, 1, 0, 3});
  test.integers("position", 1, 4, {2, 0, 3, 1});  // the order is 1, 3, 0, 2
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    CHECK(difference(result.at("offsets"), Tensor(DType::i32, 1, 5).assign({0, 2, 5, 8, 8}), 0) ==
          "");
    CHECK(difference(result.at("source"), Tensor(DType::i32, 1, 8).assign({3, 5, 0, 4, 7, 1, 2, 6}),
                     0) == "");
    CHECK(difference(result.at("row_of"), Tensor(DType::i32, 4, 2).assign({2, 5, 6, 0, 3, 1, 7, 4}),
                     0) == "");
  });
  for (const int64_t experts : {1, 2, 17, 150}) {
    OpTest many = routed(300, std::min<int64_t>(experts, 4), experts, 1,
                         choices(300, std::min<int64_t>(experts, 4), experts));
    std::vector<double> backwards;
    for (int64_t e = experts; e-- > 0;) backwards.push_back(static_cast<double>(e));
    many.integers("position", 1, experts, backwards);
    check_back_ends(many);
  }
}

TEST_CASE("permute: rows of the tokens; its backward is a combine without weights") {
  for (const int64_t tokens : {1, 6, 150}) {
    const int64_t width = tokens < 10 ? 33 : 161;
    OpTest test = routed(tokens, 2, 5, width, choices(tokens, 2, 5));
    test.random("x", tokens, width);
    test.random("rows", 2 * tokens, width);
    test.random("drows", 2 * tokens, width);
    test.random("dx", tokens, width);
    test.outputs = {"rows"};
    test.inputs = {"x"};
    test = with(test, [](const Run& r) {
      r.ops.permute(r.stream, r.view("x"), r.view("source"), {}, r.view("rows"));
    });
    test.backward = [](const Run& r) {
      r.ops.combine(r.stream, r.view("drows"), routing(r), {}, {}, r.view("dx"));
    };
    check_back_ends(test);
    if (tokens < 10) check_gradients(test);
  }
}

TEST_CASE("permute: the rows of some experts leave the others as they are") {
  for (const auto& range : {std::pair(0, 2), std::pair(2, 5), std::pair(1, 1)}) {
    const int first = range.first, last = range.second;  // lambdas of clang 14 take no bindings
    OpTest test = routed(150, 2, 5, 40, choices(150, 2, 5));
    test.random("x", 150, 40);
    test.random("rows", 300, 40);
    test = with(test, [first, last](const Run& r) {
      const ConstView all = r.view("offsets");
      const ConstView part(all.as<int32_t>() + first, DType::i32, 1, last - first + 1);
      r.ops.permute(r.stream, r.view("x"), r.view("source"), part, r.view("rows"));
    });
    check_back_ends(test);
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors result = run_op(ops, stream, test.tensors, test.forward);
      const Tensor &now = result.at("rows"), &before = test.tensors.at("rows");
      const auto* offsets = result.at("offsets").view().as<int32_t>();
      int64_t changed = 0;
      for (int64_t row = 0; row < 300; ++row) {
        const bool same = std::equal(now.view().row<float>(row), now.view().row<float>(row) + 40,
                                     before.view().row<float>(row));
        if (!same) ++changed;
        const bool outside = row < offsets[first] || row >= offsets[last];
        CHECK((!outside || same));
      }
      CHECK(changed == offsets[last] - offsets[first]);
    });
  }
}

TEST_CASE("combine: weighted sum in the order of the choices, on a base or on zero") {
  for (const bool weighted : {false, true}) {
    for (const bool based : {false, true}) {
      for (const int64_t tokens : {1, 7, 150}) {
        const int64_t width = tokens < 10 ? 33 : 161;
        OpTest test = routed(tokens, 3, 5, width, choices(tokens, 3, 5));
        test.random("rows", 3 * tokens, width);
        test.random("out", tokens, width);
        if (weighted) test.random("weight", tokens, 3);
        if (based) test.random("base", tokens, width);
        check_back_ends(with(test, [](const Run& r) {
          r.ops.combine(r.stream, r.view("rows"), routing(r), r.view("weight"), r.view("base"),
                        r.view("out"));
        }));
        check_back_ends(with(test, [](const Run& r) {  // out may be base
          r.ops.combine(r.stream, r.view("rows"), routing(r), r.view("weight"), r.view("out"),
                        r.view("out"));
        }));
      }
    }
  }
}

TEST_CASE("combine: more choices than a kernel reads together") {
  for (const int64_t chosen : {4, 8, 11}) {
    const int64_t tokens = 9, experts = 16, width = 40;
    OpTest test = routed(tokens, chosen, experts, width, choices(tokens, chosen, experts));
    test.random("rows", chosen * tokens, width);
    test.random("out", tokens, width);
    test.random("weight", tokens, chosen);
    check_back_ends(with(test, [](const Run& r) {
      r.ops.combine(r.stream, r.view("rows"), routing(r), r.view("weight"), {}, r.view("out"));
    }));
  }
}

TEST_CASE("combine: the rows of some experts alone, others are not read") {
  for (const auto& range : {std::pair(0, 2), std::pair(2, 5), std::pair(1, 1), std::pair(0, 5)}) {
    const int first = range.first, last = range.second;  // lambdas of clang 14 take no bindings
    for (const int64_t chosen : {2, 5}) {
      const int64_t tokens = 150, width = 40;
      OpTest test = routed(tokens, chosen, 5, width, choices(tokens, chosen, 5));
      test.random("rows", chosen * tokens, width);
      test.random("weight", tokens, chosen);
      test.random("base", tokens, width);
      test.random("out", tokens, width);
      const auto part = [first, last](const Run& r) {
        const ConstView all = r.view("offsets");
        return ConstView(all.as<int32_t>() + first, DType::i32, 1, last - first + 1);
      };
      const auto sum = [part](const Run& r) {
        r.ops.combine(r.stream, r.view("rows"), {part(r), {}, r.view("row_of")}, r.view("weight"),
                      r.view("base"), r.view("out"));
      };
      check_back_ends(with(test, sum));
      // What lies outside the part may be anything.
      for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
        const auto spoiled = [&](const Run& r) {
          const auto* offsets = r.view("offsets").as<int32_t>();
          const View rows = r.view("rows");
          for (int64_t row = 0; row < rows.rows; ++row) {
            const bool own = row >= offsets[first] && row < offsets[last];
            if (!own) std::fill_n(rows.row<float>(row), width, std::nanf(""));
          }
          sum(r);
        };
        if (std::string(ops.name()) == "cuda") return;  // the host cannot write its rows
        const Tensors clean = run_op(ops, stream, test.tensors, with(test, sum).forward);
        const Tensors other = run_op(ops, stream, test.tensors, with(test, spoiled).forward);
        CHECK(difference(clean.at("out"), other.at("out"), 0) == "");
      });
    }
  }
}

TEST_CASE("combine: each choice by its own weight") {
  OpTest test = routed(2, 2, 3, 1, {2, 0, 1, 2});
  test.random("rows", 4, 1).assign({10, 20, 30, 40});  // experts 0, 1, 2, 2
  test.random("weight", 2, 2).assign({1, 2, 3, 4});
  test.random("base", 2, 1).assign({100, 200});
  test.random("out", 2, 1);
  test = with(test, [](const Run& r) {
    r.ops.combine(r.stream, r.view("rows"), routing(r), r.view("weight"), r.view("base"),
                  r.view("out"));
  });
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    const Tensors result = run_op(ops, stream, test.tensors, test.forward);
    CHECK(result.at("out").get(0, 0) == 100 + 1 * 30 + 2 * 10);
    CHECK(result.at("out").get(1, 0) == 200 + 3 * 20 + 4 * 40);
  });
}

TEST_CASE("weights go into expert order and back into token order") {
  for (const bool back : {false, true}) {
    OpTest test = routed(6, 2, 5, 1, choices(6, 2, 5));
    test.random("values", 6, 2);
    test.random("rows", 1, 12);
    test = with(test, [=](const Run& r) {
      if (back) {
        r.ops.to_token_order(r.stream, r.view("rows"), routing(r), r.view("values"));
      } else {
        r.ops.to_expert_order(r.stream, r.view("values"), routing(r), r.view("rows"));
      }
    });
    check_back_ends(test);
    for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
      const Tensors after = run_op(ops, stream, test.tensors, test.forward);
      const Tensors& before = test.tensors;
      for (int64_t r = 0; r < 12; ++r) {
        const auto source = static_cast<int64_t>(after.at("source").get(0, r));
        const double value =
            back ? before.at("rows").get(0, r) : before.at("values").get(source / 2, source % 2);
        CHECK(after.at("values").get(source / 2, source % 2) == value);
        CHECK(after.at("rows").get(0, r) == value);
      }
    });
  }
}
