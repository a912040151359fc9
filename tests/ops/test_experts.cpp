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
};

std::vector<ExpertView> experts_of(const Run& r, size_t n) {
  std::vector<ExpertView> experts;
  for (size_t e = 0; e < n; ++e) {
    experts.push_back(
        {r.linear(name_of("gate", e)), r.linear(name_of("up", e)), r.linear(name_of("down", e))});
  }
  return experts;
}

/// The loss is taken of `out`, the rows of y by their combine weights, because that is what the
/// backward starts from.
OpTest experts(const Case& c) {
  OpTest test;
  const size_t n = c.rows.size();
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
      if (e == c.frozen) continue;
      test.random("d" + name_of(map, e), out, in);
      if (c.rows[e] > 0) test.inputs.push_back(name_of(map, e));
    }
  }
  test.products = true;
  test.bf16_tolerance = 2e-3;  // h, and the gradients of gate and up, are rounded as operands
  test.scratch = [=](const OpSet& ops) {
    return ops.experts_scratch(rows, static_cast<int64_t>(n), c.hidden, c.width);
  };
  test.forward = [=](const Run& r) {
    const std::vector<ExpertView> views = experts_of(r, n);
    r.ops.experts_forward(r.stream, r.view("x"), r.view("offsets"), views, r.view("gate"),
                          r.view("up"), r.view("y"));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < c.hidden; ++i) {
        r["out"].set(row, i, r["weight"].get(0, row) * r["y"].get(row, i));
      }
    }
  };
  test.backward = [=](const Run& r) {
    std::vector<ExpertGradient> gradients;
    for (size_t e = 0; e < n; ++e) {
      gradients.push_back({r.view("d" + name_of("gate", e)), r.view("d" + name_of("up", e)),
                           r.view("d" + name_of("down", e))});
    }
    const std::vector<ExpertView> views = experts_of(r, n);
    r.ops.experts_backward(r.stream, r.view("dout"), r.view("weight"), r.view("x"),
                           r.view("offsets"), views, r.view("gate"), r.view("up"), r.view("dx"),
                           r.view("dweight"), gradients);
  };
  return test;
}

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

TEST_CASE("experts: a frozen one") {
  check_op(experts({.rows = {2, 3, 1}, .hidden = 4, .width = 3, .frozen = 1}));
}
