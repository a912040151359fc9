// Ranges of the width of experts (ops/width_range.h): calls on the ranges give together what one call on
// the whole gives. Each range is held to the definition on every back end, and to the same bits with any
// number of workers; sums over ranges are held to the whole, and their gradients to differences in f64.
#include <algorithm>
#include <cmath>

#include "op_test.h"
#include "ops/width_range.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr const char* kRangeMaps[] = {"gate", "up", "down"};
constexpr uint64_t kRangeKeys[] = {21, 22, 23};

struct RangeCase {
  std::vector<int64_t> rows;    // of each expert
  std::vector<int64_t> begins;  // of the ranges, the first 0
  int64_t hidden, width;
  DType stored = DType::f32;
  int64_t rank = 0;
  double dropout = 0;

  WidthRange range(size_t i) const {
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : width;
    return {begins[i], end - begins[i]};
  }
};

std::string named(const char* name, size_t number) { return name + std::to_string(number); }

std::vector<ExpertView> ranges_of(const Run& r, const RangeCase& c, WidthRange range) {
  std::vector<ExpertView> experts;
  for (size_t e = 0; e < c.rows.size(); ++e) {
    const auto map = [&](size_t i) {
      return r.linear(named(kRangeMaps[i], e), "",
                      Dropout{c.dropout, kRangeKeys[i], r.view("ids")});
    };
    experts.push_back(range_of(ExpertView{map(0), map(1), map(2)}, range));
  }
  return experts;
}

std::vector<ExpertGradient> gradients_of(const Run& r, const RangeCase& c, WidthRange range) {
  std::vector<ExpertGradient> gradients;
  for (size_t e = 0; e < c.rows.size(); ++e) {
    gradients.push_back(
        range_of(ExpertGradient{r.gradient(named("gate", e)), r.gradient(named("up", e)),
                                r.gradient(named("down", e))},
                 range));
  }
  return gradients;
}

/// to = the sum of `name`0, `name`1, ..., each element times its row of `weight`, if there is one.
void add_up(const Run& r, const RangeCase& c, const char* name, const char* to,
            const char* weight = nullptr) {
  r.stream.synchronize();
  Tensor& sum = r[to];
  for (int64_t row = 0; row < sum.rows(); ++row) {
    for (int64_t i = 0; i < sum.cols(); ++i) {
      double all = 0;
      for (size_t part = 0; part < c.begins.size(); ++part) all += r[named(name, part)].get(row, i);
      sum.set(row, i, weight == nullptr ? all : all * r[weight].get(0, row));
    }
  }
}

OpTest by_ranges(const RangeCase& c) {
  OpTest test;
  const size_t parts = c.begins.size();
  test.described("experts by ranges", "experts", std::ssize(c.rows), "hidden", c.hidden, "width",
                 c.width, "ranges", static_cast<int64_t>(parts), "stored", c.stored, "rank", c.rank,
                 "dropout", c.dropout);
  std::vector<double> offsets = {0};
  for (const int64_t rows : c.rows) offsets.push_back(offsets.back() + static_cast<double>(rows));
  const auto rows = static_cast<int64_t>(offsets.back());
  test.integers("offsets", 1, std::ssize(offsets), offsets);
  for (const char* name : {"x", "out", "dout", "dx"}) test.random(name, rows, c.hidden);
  for (size_t i = 0; i < parts; ++i) {
    for (const char* name : {"y", "dx"}) test.random(named(name, i), rows, c.hidden);
    test.random(named("dweight", i), 1, rows);
  }
  for (const char* name : {"gate", "up"}) test.random(name, rows, c.width);
  for (const char* name : {"weight", "dweight"}) test.random(name, 1, rows);
  test.outputs = {"out"};
  test.inputs = {"weight", "x"};
  for (size_t e = 0; e < c.rows.size(); ++e) {
    for (const char* map : kRangeMaps) {
      const bool down = map == kRangeMaps[2];
      const int64_t out = down ? c.hidden : c.width, in = down ? c.width : c.hidden;
      test.random(named(map, e), c.stored, out, in);
      if (c.rank > 0) test.low_rank(named(map, e), out, in, c.rank, DType::f32, true);
      test.random("d" + named(map, e), out, in);
      test.inputs.push_back(named(map, e));
    }
  }
  std::vector<double> ids;
  for (int64_t row = 0; row < rows; ++row) ids.push_back(static_cast<double>((row * 7 + 3) % 101));
  if (c.dropout > 0) test.integers("ids", 1, rows, ids);
  test.products = true;
  if (c.rank > 0) test.tolerance = 3e-5;
  test.bf16_tolerance = c.rank == 0 ? 2e-3 : 2e-2;
  test.scratch = [=](const OpSet& ops) {
    return ops.experts_scratch(rows, std::ssize(c.rows), c.hidden, c.width, c.rank, Compute::bf16,
                               rows / 2);
  };
  test.forward = [=](const Run& r) {
    for (size_t i = 0; i < parts; ++i) {
      r.ops.experts_forward(r.stream, r.view("x"), ExpertRows(r.view("offsets")),
                            ranges_of(r, c, c.range(i)), columns_in(r.view("gate"), c.range(i)),
                            columns_in(r.view("up"), c.range(i)), r.view(named("y", i)));
    }
    add_up(r, c, "y", "out", "weight");
  };
  test.backward = [=](const Run& r) {
    for (size_t i = 0; i < parts; ++i) {
      const WidthRange range = c.range(i);
      r.ops.experts_backward(r.stream, r.view("dout"), r.view("weight"), r.view("x"),
                             ExpertRows(r.view("offsets")), ranges_of(r, c, range),
                             columns_in(r.view("gate"), range), columns_in(r.view("up"), range),
                             r.view(named("dx", i)), r.view(named("dweight", i)),
                             gradients_of(r, c, range));
    }
    add_up(r, c, "dx", "dx");
    add_up(r, c, "dweight", "dweight");
  };
  return test;
}

/// All tensors of the test behind forward and backward on a back end.
Tensors computed(const OpTest& test, const OpSet& ops, Compute compute, DType activations) {
  Tensors tensors = test.tensors;
  if (activations == DType::f64) {
    for (auto& [name, tensor] : tensors) {
      if (tensor.dtype() != DType::f32) continue;
      Tensor wide(DType::f64, tensor.rows(), tensor.cols());
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        for (int64_t c = 0; c < tensor.cols(); ++c) wide.set(r, c, tensor.get(r, c));
      }
      tensor = std::move(wide);
    }
  }
  TestStream stream(ops, 1, test.scratch(ops));
  const Run run{ops, stream, tensors, compute};
  test.forward(run);
  test.backward(run);
  run.stream.synchronize();
  return tensors;
}

double distance(const Tensor& a, const Tensor& b) {
  double apart = 0, size = 0;
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.cols(); ++c) {
      apart += std::pow(a.get(r, c) - b.get(r, c), 2);
      size += std::pow(b.get(r, c), 2);
    }
  }
  return std::sqrt(apart / std::max(size, 1e-300));
}

void check_sums(RangeCase c) {
  const OpTest cut = by_ranges(c);
  c.begins = {0};
  const OpTest whole = by_ranges(c);
  for (const OpSet* ops : all_op_sets()) {
    for (const auto& [compute, type, most] :
         {std::tuple{Compute::f32, DType::f32, 2e-6}, {Compute::f64, DType::f64, 1e-13}}) {
      if (!ops->supports(type, compute)) continue;
      const Tensors sums = computed(cut, *ops, compute, type);
      const Tensors one = computed(whole, *ops, compute, type);
      for (const auto& [name, tensor] : one) {
        const bool of_part = name == "y0" || name == "dx0" || name == "dweight0";
        if (of_part || tensor.dtype() == DType::i32) continue;
        INFO(name << " on " << ops->name() << ", " << cut.parameters);
        CHECK(distance(sums.at(name), tensor) <= most);
      }
    }
  }
}

}  // namespace

TEST_CASE("experts by ranges: values and gradients, on every back end and in differences") {
  check_op(by_ranges({.rows = {3, 1, 4}, .begins = {0, 2}, .hidden = 5, .width = 3}));
  check_op(by_ranges({.rows = {4}, .begins = {0, 4}, .hidden = 3, .width = 7, .rank = 2}));
  check_op(by_ranges(
      {.rows = {3, 2}, .begins = {0, 4, 8}, .hidden = 5, .width = 11, .rank = 2, .dropout = 0.4}));
}

TEST_CASE("experts by ranges: odd sizes, more than one tile, every stored type") {
  for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
    check_back_ends(by_ranges(
        {.rows = {3, 1, 7}, .begins = {0, 12}, .hidden = 33, .width = 17, .stored = stored}));
  }
  check_back_ends(by_ranges({.rows = {130, 1},
                             .begins = {0, 64, 192},
                             .hidden = 70,
                             .width = 227,
                             .stored = DType::bf16}));
}

TEST_CASE("experts by ranges: together they are the whole") {
  for (const double dropout : {0.0, 0.3}) {
    for (const int64_t rank : {0, 3}) {
      if (rank == 0 && dropout > 0) continue;
      check_sums({.rows = {9, 1, 30},
                  .begins = {0, 8},
                  .hidden = 33,
                  .width = 20,
                  .rank = rank,
                  .dropout = dropout});
      check_sums({.rows = {40},
                  .begins = {0, 64, 128},
                  .hidden = 64,
                  .width = 192,
                  .rank = rank,
                  .dropout = dropout});
    }
  }
}
