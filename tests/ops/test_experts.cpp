#include <array>
#include <numeric>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kMaps[] = {"gate", "up", "down"};

std::string name_of(const char* map, size_t e) { return map + std::to_string(e); }

struct Case {
  std::vector<int64_t> rows;  // of each expert, and of each of its segments
  int64_t hidden, width;
  DType stored = DType::f32;
  size_t frozen = 99;  // an expert that is not trained
  bool trained = true;
  std::vector<int64_t> ranks = {};  // of each expert's low-rank pairs, 0: none
  double dropout = 0;
  int64_t segments = 1;
  int64_t before = 0, behind = 0;  // rows of the views that are of no expert
  bool indexed = false;            // x and dy have a row for two rows of the experts
  bool halves = false;             // the backward in two calls

  size_t experts() const { return rows.size() / static_cast<size_t>(segments); }
  int64_t rows_of(size_t expert) const {
    const auto first = rows.begin() + static_cast<int64_t>(expert) * segments;
    return std::accumulate(first, first + segments, int64_t{0});
  }
};

constexpr int64_t kChoices = 2;
constexpr std::array<uint64_t, 4> kKeys[] = {{17, 5, 6, 7}, {18, 9, 9, 8}, {19, 4, 3, 2}};

std::vector<ExpertView> experts_of(const Run& r, const Case& c) {
  std::vector<ExpertView> experts;
  for (size_t e = 0; e < c.experts(); ++e) {
    const auto map = [&](int i) {
      Dropout dropout{c.dropout, kKeys[i][0], r.view("ids")};
      if (c.segments > 1) dropout.segment_keys = kKeys[i];
      return r.linear(name_of(kMaps[i], e), "", dropout);
    };
    experts.push_back({map(0), map(1), map(2)});
  }
  return experts;
}

ExpertRows rows_of(const Run& r, const Case& c) {
  const ExpertRows rows(r.view("offsets"), c.segments);
  return c.indexed ? rows.indexed(r.view("source"), kChoices) : rows;
}

/// The loss is taken of `out`, the rows of y by their combine weights, because that is what the
/// backward starts from.
OpTest experts(const Case& c) {
  OpTest test;
  const size_t n = c.experts();
  test.described("experts", "experts", static_cast<int64_t>(n), "rows of the first",
                 c.rows.empty() ? int64_t{0} : c.rows[0], "hidden", c.hidden, "width", c.width,
                 "stored", c.stored, "trained", c.trained, "dropout", c.dropout, "segments",
                 c.segments, "indexed", c.indexed, "halves", c.halves);
  std::vector<double> offsets = {static_cast<double>(c.before)};
  for (const int64_t rows : c.rows) offsets.push_back(offsets.back() + static_cast<double>(rows));
  const int64_t end = static_cast<int64_t>(offsets.back()), rows = end + c.behind;
  test.integers("offsets", 1, std::ssize(offsets), offsets);
  for (const char* name : {"y", "out", "dout", "dx"}) test.random(name, rows, c.hidden);
  const int64_t inputs = c.indexed ? (rows + kChoices - 1) / kChoices : rows;
  test.random("x", inputs, c.hidden);
  for (const char* name : {"gate", "up", "h"}) test.random(name, rows, c.width);
  test.random("weight", 1, rows);
  test.random("dweight", 1, rows);
  test.outputs = {"out"};
  test.inputs = {"weight"};
  if (c.indexed) {
    std::vector<double> source;  // every row once, in an order of no order
    const auto row = [&](int64_t r) { return (r * 101 + 7) % rows; };
    for (int64_t r = 0; r < rows; ++r) source.push_back(static_cast<double>(row(r)));
    test.integers("source", 1, rows, source);
    const Tensor& dy = test.random("dy", inputs, c.hidden);
    for (int64_t r = 0; r < rows && dy.size() > 0; ++r) {
      for (int64_t i = 0; i < c.hidden; ++i) {
        test.tensors["dout"].set(r, i, dy.get(row(r) / kChoices, i));
      }
    }
  } else {
    test.inputs.push_back("x");
  }
  for (size_t e = 0; e < n; ++e) {
    for (const char* map : kMaps) {
      const bool down = map == kMaps[2];
      const int64_t out = down ? c.hidden : c.width, in = down ? c.width : c.hidden;
      test.random(name_of(map, e), c.stored, out, in);
      if (!c.ranks.empty() && c.ranks[e] > 0) {
        test.low_rank(name_of(map, e), out, in, c.ranks[e], DType::f32, true);
        if (c.rows_of(e) == 0) test.inputs.resize(test.inputs.size() - 2);
      }
      if (e == c.frozen || !c.trained) continue;
      test.random("d" + name_of(map, e), out, in);
      if (c.rows_of(e) > 0) test.inputs.push_back(name_of(map, e));
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
    return ops.experts_scratch(rows, std::ssize(c.rows), c.hidden, c.width, most, Compute::bf16,
                               rows / 2);
  };
  const Body products = [=](const Run& r) {
    r.ops.experts_forward(r.stream, r.view("x"), rows_of(r, c), experts_of(r, c), r.view("gate"),
                          r.view("up"), r.view("y"));
  };
  test.forward = [=](const Run& r) {
    products(r);
    r.stream.synchronize();
    for (int64_t row = c.before; row < end; ++row) {
      for (int64_t i = 0; i < c.hidden; ++i) {
        r["out"].set(row, i, r["weight"].get(0, row) * r["y"].get(row, i));
      }
    }
  };
  const auto backward = [=](const Run& r, const std::vector<ExpertGradient>& gradients) {
    const std::vector<ExpertView> views = experts_of(r, c);
    const View dy = r.view(c.indexed ? "dy" : "dout");
    if (!c.halves) {
      r.ops.experts_backward(r.stream, dy, r.view("weight"), r.view("x"), rows_of(r, c), views,
                             r.view("gate"), r.view("up"), r.view("dx"), r.view("dweight"),
                             gradients);
      return;
    }
    r.ops.experts_dgrad(r.stream, dy, r.view("weight"), rows_of(r, c), views, r.view("gate"),
                        r.view("up"), r.view("h"), r.view("dx"), r.view("dweight"));
    r.ops.experts_wgrad(r.stream, dy, r.view("x"), rows_of(r, c), views, r.view("gate"),
                        r.view("up"), r.view("h"), gradients);
  };
  test.backward = [=](const Run& r) {
    std::vector<ExpertGradient> gradients;
    for (size_t e = 0; e < n; ++e) {
      gradients.push_back({r.gradient(name_of("gate", e)), r.gradient(name_of("up", e)),
                           r.gradient(name_of("down", e))});
    }
    backward(r, gradients);
  };
  const double flops = 6.0 * static_cast<double>((end - c.before) * c.hidden * c.width);
  test.timed = {
      {"forward", products, flops},
      {"data gradient", [=](const Run& r) { backward(r, std::vector<ExpertGradient>(n)); }, flops},
      {"whole backward", test.backward, 2 * flops}};
  return test;
}

// Eight experts with as many rows each; few rows also in each of eight segments.
const bool added = [] {
  for (const auto& [stored, compute] :
       {std::pair{DType::f32, Compute::f32}, {DType::bf16, Compute::bf16}}) {
    const auto add = [compute = compute](const Case& c) {
      add_perf_cases({{[c] { return experts(c); }, compute}});
    };
    Case c{.rows = {}, .hidden = 2048, .width = 768, .stored = stored};
    for (const int64_t rows : {1, 16, 64, 128, 256, 512}) {
      c.rows.assign(8, rows);
      add(c);
    }
    c.rows.assign(8, 256);
    c.indexed = true;
    add(c);
    c.rows.assign(64, 16);
    c.indexed = false;
    c.segments = 8;
    add(c);
    Case small{.rows = {}, .hidden = 256, .width = 128, .stored = stored};
    small.rows.assign(8, 16);
    add(small);
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

TEST_CASE("experts: segments, rows of no expert around them, and an index") {
  for (const bool halves : {false, true}) {
    for (const bool indexed : {false, true}) {
      check_op(experts({.rows = {2, 0, 1, 0, 0, 3, 1, 1},
                        .hidden = 5,
                        .width = 3,
                        .segments = 2,
                        .before = 2,
                        .behind = 1,
                        .indexed = indexed,
                        .halves = halves}));
      check_op(experts({.rows = {2, 1, 0, 3},
                        .hidden = 5,
                        .width = 3,
                        .trained = false,
                        .ranks = {2, 1},
                        .dropout = 0.4,
                        .segments = 2,
                        .before = 1,
                        .indexed = indexed,
                        .halves = halves}));
    }
  }
}

TEST_CASE("experts: segments of more than one tile") {
  Case c{.rows = {130, 3, 0, 16, 20, 16, 0, 0, 520},
         .hidden = 70,
         .width = 67,
         .stored = DType::bf16,
         .segments = 3,
         .before = 30,
         .behind = 9,
         .indexed = true};
  check_back_ends(experts(c));
  c.trained = false;
  c.ranks = {4, 4, 9};
  c.dropout = 0.4;
  c.halves = true;
  check_back_ends(experts(c));
}
