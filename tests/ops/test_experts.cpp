#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kMaps[] = {"gate", "up", "down"};

std::string name_of(const char* map, size_t e) { return map + std::to_string(e); }

struct Case {
  std::vector<int64_t> rows;  // of each expert
  int64_t hidden, width;
  DType stored = DType::f32;
  size_t frozen = 99;  // an expert that is not trained
  bool trained = true;
  std::vector<int64_t> ranks = {};  // of each expert's low-rank pairs, 0: none
  double dropout = 0;
};

std::vector<ExpertView> experts_of(const Run& r, size_t n, double dropout) {
  std::vector<ExpertView> experts;
  for (size_t e = 0; e < n; ++e) {
    const auto map = [&](int i) {
      return r.linear(name_of(kMaps[i], e), "",
                      {dropout, static_cast<uint64_t>(17 + i), r.view("ids")});
    };
    experts.push_back({map(0), map(1), map(2)});
  }
  return experts;
}

/// The loss is taken of `out`, the rows of y by their combine weights, because that is what the
/// backward starts from.
OpTest experts(const Case& c) {
  OpTest test;
  const size_t n = c.rows.size();
  test.described("experts", "experts", static_cast<int64_t>(n), "rows of the first",
                 c.rows.empty() ? int64_t{0} : c.rows[0], "hidden", c.hidden, "width", c.width,
                 "stored", c.stored, "trained", c.trained, "dropout", c.dropout);
  std::vector<double> offsets = {0};
  for (const int64_t rows : c.rows) offsets.push_back(offsets.back() + static_cast<double>(rows));
  const auto rows = static_cast<int64_t>(offsets.back());
  test.integers("offsets", 1, static_cast<int64_t>(n) + 1, offsets);
  for (const char* name : {"x", "y", "out", "dout", "dx"}) test.random(name, rows, c.hidden);
  for (const char* name : {"gate", "up"}) test.random(name, rows, c.width);
  test.random("weight", 1, rows);
  test.random("dweight", 1, rows);
  test.outputs = {"out"};
  test.inputs = {"x", "weight"};
  for (size_t e = 0; e < n; ++e) {
    for (const char* map : kMaps) {
      const bool down = map == kMaps[2];
      const int64_t out = down ? c.hidden : c.width, in = down ? c.width : c.hidden;
      test.random(name_of(map, e), c.stored, out, in);
      if (!c.ranks.empty() && c.ranks[e] > 0) {
        test.low_rank(name_of(map, e), out, in, c.ranks[e], DType::f32, true);
        if (c.rows[e] == 0) test.inputs.resize(test.inputs.size() - 2);
      }
      if (e == c.frozen || !c.trained) continue;
      test.random("d" + name_of(map, e), out, in);
      if (c.rows[e] > 0) test.inputs.push_back(name_of(map, e));
    }
  }
  std::vector<double> ids;  // of rows: any that differ
  for (int64_t row = 0; row < rows; ++row) ids.push_back(static_cast<double>((row * 7 + 3) % 101));
  if (c.dropout > 0) test.integers("ids", 1, rows, ids);
  int64_t most = 0;
  for (const int64_t rank : c.ranks) most = std::max(most, rank);
  test.products = true;
  // h, and the gradients of gate and up, are rounded as operands; so are products with A and B.
  if (most > 0) test.tolerance = 3e-5;  // sums of more terms
  test.bf16_tolerance = most == 0 ? 2e-3 : 2e-2;
  test.scratch = [=](const OpSet& ops) {
    return ops.experts_scratch(rows, static_cast<int64_t>(n), c.hidden, c.width, most);
  };
  const Body products = [=](const Run& r) {
    const std::vector<ExpertView> views = experts_of(r, n, c.dropout);
    r.ops.experts_forward(r.stream, r.view("x"), r.view("offsets"), views, r.view("gate"),
                          r.view("up"), r.view("y"));
  };
  test.forward = [=](const Run& r) {
    products(r);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < c.hidden; ++i) {
        r["out"].set(row, i, r["weight"].get(0, row) * r["y"].get(row, i));
      }
    }
  };
  const auto backward = [=](const Run& r, const std::vector<ExpertGradient>& gradients) {
    const std::vector<ExpertView> views = experts_of(r, n, c.dropout);
    r.ops.experts_backward(r.stream, r.view("dout"), r.view("weight"), r.view("x"),
                           r.view("offsets"), views, r.view("gate"), r.view("up"), r.view("dx"),
                           r.view("dweight"), gradients);
  };
  test.backward = [=](const Run& r) {
    std::vector<ExpertGradient> gradients;
    for (size_t e = 0; e < n; ++e) {
      gradients.push_back({r.gradient(name_of("gate", e)), r.gradient(name_of("up", e)),
                           r.gradient(name_of("down", e))});
    }
    backward(r, gradients);
  };
  const double flops = 6.0 * static_cast<double>(rows * c.hidden * c.width);
  test.timed = {
      {"forward", products, flops},
      {"data gradient", [=](const Run& r) { backward(r, std::vector<ExpertGradient>(n)); }, flops},
      {"whole backward", test.backward, 2 * flops}};
  return test;
}

// Eight experts with as many rows each.
const bool added = [] {
  for (const auto& [stored, compute] :
       {std::pair{DType::f32, Compute::f32}, {DType::bf16, Compute::bf16}}) {
    for (const int64_t rows : {1, 16, 64, 128, 256, 512}) {
      const Case c{
          .rows = std::vector<int64_t>(8, rows), .hidden = 2048, .width = 768, .stored = stored};
      add_perf_cases({{[c] { return experts(c); }, compute}});
    }
  }
  return true;
}();

}  // namespace

TEST_CASE("experts: values and gradients, with an expert of no row and one of one") {
  check_op(experts({.rows = {3, 0, 1, 4}, .hidden = 5, .width = 3}));
  check_op(experts({.rows = {1}, .hidden = 1, .width = 1}));
}

TEST_CASE("experts: odd sizes, every stored type") {
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    INFO("stored " << hearth::name_of(stored));
    check_back_ends(
        experts({.rows = {3, 0, 1, 7, 2}, .hidden = 33, .width = 17, .stored = stored}));
  }
}

TEST_CASE("experts: all rows to one, a single row, no rows") {
  check_back_ends(experts({.rows = {0, 0, 70, 0, 0}, .hidden = 33, .width = 17}));
  OpTest single = experts({.rows = {0, 1, 0}, .hidden = 33, .width = 17});
  single.tolerance = 1e-4;  // dweight is one number, a sum in which terms cancel
  check_back_ends(single);
  check_back_ends(experts({.rows = {0, 0}, .hidden = 9, .width = 5}));
}

TEST_CASE("experts: more than one tile") {
  check_back_ends(
      experts({.rows = {130, 1, 0, 40}, .hidden = 70, .width = 67, .stored = DType::bf16}));
  check_back_ends(experts({.rows = {9, 1, 0, 2}, .hidden = 230, .width = 226}));
  check_back_ends(experts({.rows = {3, 500}, .hidden = 9, .width = 7}));
}

TEST_CASE("experts: weights whose rows are whole pieces of 16 bytes") {
  OpTest test =
      experts({.rows = {9, 0, 140, 1}, .hidden = 392, .width = 136, .stored = DType::bf16});
  test.tolerance = 3e-5;  // sums of more terms
  check_back_ends(test);
}

TEST_CASE("experts: a frozen one") {
  check_op(experts({.rows = {2, 3, 1}, .hidden = 4, .width = 3, .frozen = 1}));
}

TEST_CASE("experts: low-rank pairs on frozen and trained weights, of differing rank") {
  for (const double dropout : {0.0, 0.4}) {
    check_op(experts({.rows = {3, 0, 1, 4},
                      .hidden = 5,
                      .width = 3,
                      .trained = false,
                      .ranks = {2, 2, 2, 2},
                      .dropout = dropout}));
    check_op(experts({.rows = {2, 3, 1},
                      .hidden = 4,
                      .width = 3,
                      .frozen = 1,
                      .ranks = {1, 3, 0},
                      .dropout = dropout}));
  }
}

TEST_CASE("experts: low-rank pairs over more than one tile") {
  for (const double dropout : {0.0, 0.4}) {
    Case many{.rows = {3, 1, 0, 520}, .hidden = 40, .width = 20};
    Case wide{.rows = {3, 1, 0, 20}, .hidden = 390, .width = 300};
    for (Case* c : {&many, &wide}) {
      if (c == &wide && dropout == 0) continue;
      c->stored = DType::bf16;
      c->trained = false;
      c->ranks = {4, 4, 4, 9};
      c->dropout = dropout;
      check_back_ends(experts(*c));
    }
  }
}
