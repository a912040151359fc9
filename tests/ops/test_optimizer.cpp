#include <limits>

#include "op_test.h"

using namespace hearth;
using namespace hearth::test;

namespace {

OpTest adamw(int64_t size, DType working, const AdamWOptions& options) {
  OpTest test;
  test.described("adamw", "parameters", size, "working", working);
  test.random("gradient", 1, size);
  test.random("master", 1, size);
  test.random("moment1", 1, size, 0.1);
  test.random("moment2", 1, size, 0.1);
  Tensor& squares = test.tensors.at("moment2");
  for (int64_t i = 0; i < squares.size(); ++i) squares.set(0, i, std::abs(squares.get(0, i)));
  if (working != DType::f32) test.random("working", working, 1, size);
  test.scratch = [=](const OpSet& ops) { return ops.row_scratch(1, size); };
  test.forward = [=](const Run& r) {
    const AdamWTensors tensors{r.view("gradient"), r.view("master"), r.view("moment1"),
                               r.view("moment2"), r.view("working")};
    r.ops.adamw(r.stream, options, {&tensors, 1});
  };
  // gradient, master and two moments are read and written
  test.timed = {{"update", test.forward, 0, 32.0 * static_cast<double>(size)}};
  return test;
}

/// Elements further from the reference than `units` units in the last place of the terms that they
/// are sums of: where terms cancel, f32 arithmetic can do no better.
int64_t beyond(const Tensor& actual, const Tensor& expected, const Tensor& terms, double units) {
  int64_t count = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double limit = units * 0x1p-23 * terms.get(0, i);
    count += !(std::abs(actual.get(0, i) - expected.get(0, i)) <= limit);
  }
  return count;
}

constexpr AdamWOptions kOptions = {.lr = 1e-2,
                                   .beta1 = 0.9,
                                   .beta2 = 0.98,
                                   .eps = 1e-6,
                                   .weight_decay = 0.1,
                                   .step = 1,
                                   .gradient_scale = 1};

const bool added = add_perf_cases(
    {{[] { return adamw(int64_t{32} << 20, DType::f32, {.lr = 1e-5}); }, Compute::f32}});

}  // namespace

TEST_CASE("adamw: three steps of torch.optim.AdamW (recorded, torch 2.15)") {
  OpTest test = adamw(4, DType::f32, kOptions);
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    Tensors t = test.tensors;
    t.at("master").assign({0.5, -1.25, 3.0, 1e-3});
    t.at("moment1").fill(0);
    t.at("moment2").fill(0);
    const std::vector<std::vector<double>> gradients = {
        {0.1, -2.0, 1e-4, 0.0}, {-0.3, 1.0, 2e-4, 5.0}, {0.25, 0.5, -1e-4, -5.0}};
    const std::vector<std::vector<double>> masters = {
        {0.489500105, -1.23874998, 2.98709893, 0.00099900004},
        {0.493933618, -1.23484015, 2.97454786, -0.00640791655},
        {0.492475688, -1.23298728, 2.96740174, -0.00595183112}};
    for (size_t step = 0; step < 3; ++step) {
      AdamWOptions options = kOptions;
      options.step = static_cast<int64_t>(step) + 1;
      t.at("gradient").assign(gradients[step]);
      const AdamWTensors tensors{t.at("gradient").view(), t.at("master").view(),
                                 t.at("moment1").view(), t.at("moment2").view()};
      ops.adamw(stream, options, {&tensors, 1});
      for (int64_t i = 0; i < 4; ++i) {
        const double expected = masters[step][static_cast<size_t>(i)];
        CHECK(std::abs(t.at("master").get(0, i) - expected) <= 3e-7 * std::abs(expected));
        CHECK(t.at("gradient").get(0, i) == 0);
      }
    }
    CHECK(difference(t.at("moment1"),
                     Tensor(DType::f64, 1, 4)
                         .assign({0.00610000035, -0.0219999999, 1.60999989e-05, -0.0500000082}),
                     1e-6) == "");
    CHECK(difference(t.at("moment2"),
                     Tensor(DType::f64, 1, 4)
                         .assign({0.00320608006, 0.101432003, 1.17608001e-09, 0.98999995}),
                     1e-6) == "");
  });
}

TEST_CASE("adamw: within units in the last place of the reference in f64") {
  for (const double scale : {1.0, 0.3}) {
    for (const int64_t step : {1, 7, 100000}) {
      AdamWOptions options = kOptions;
      options.step = step;
      options.gradient_scale = scale;
      const int64_t size = step == 7 ? 50001 : 1001;
      const OpTest test = adamw(size, DType::f32, options);
      check_back_ends(test);
      TestStream reference_stream(1, test.scratch(reference_ops()));
      const Tensors expected =
          run_op(reference_ops(), reference_stream, test.tensors, test.forward);
      Tensors terms = test.tensors;
      for (int64_t i = 0; i < size; ++i) {
        const auto before = [&](const char* name) { return test.tensors.at(name).get(0, i); };
        const double g = before("gradient") * scale, w = before("master");
        const double m = std::abs(before("moment1")) + std::abs(g);
        const double lost = m / std::abs(expected.at("moment1").get(0, i));  // by cancelling
        terms.at("moment1").set(0, i, m);
        terms.at("moment2").set(0, i, before("moment2") + g * g);
        const double change = std::abs(expected.at("master").get(0, i) - w);
        terms.at("master").set(0, i, std::abs(w) + change * lost);
      }
      for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
        const Tensors actual = run_op(ops, stream, test.tensors, test.forward);
        for (const char* name : {"master", "moment1", "moment2"}) {
          INFO(name << ", step " << step << ", gradient scale " << scale);
          CHECK(beyond(actual.at(name), expected.at(name), terms.at(name), 2) == 0);
        }
        CHECK(difference(actual.at("gradient"), Tensor(DType::f32, 1, size).fill(0), 0) == "");
      });
    }
  }
}

TEST_CASE("adamw: decay and small steps are not lost beside the weight") {
  // 1 - lr * weight_decay is no f32 to more than two digits here; the decay itself is.
  AdamWOptions options = kOptions;
  options.lr = 1e-5;
  options.weight_decay = 0.01;
  const OpTest test = adamw(20000, DType::f32, options);
  const auto drift = [&](const OpSet& ops, Stream& stream) {
    const Tensors after = run_op(ops, stream, test.tensors, test.forward);
    double sum = 0;
    for (int64_t i = 0; i < after.at("master").size(); ++i) {
      const double w = test.tensors.at("master").get(0, i);
      sum += (after.at("master").get(0, i) - w) * (w > 0 ? 1 : -1);
    }
    return sum;
  };
  TestStream reference_stream(1, test.scratch(reference_ops()));
  const double expected = drift(reference_ops(), reference_stream);
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    CHECK(std::abs(drift(ops, stream) / expected - 1) < 0.02);
  });
}

TEST_CASE("adamw: the working weight is the rounded master") {
  for (const DType working : {DType::bf16, DType::f16}) {
    for (const int64_t size : {1, 1001}) {
      const OpTest test = adamw(size, working, kOptions);
      for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
        const Tensors result = run_op(ops, stream, test.tensors, test.forward);
        CHECK(difference(result.at("working"), result.at("master").as(working, 0), 0) == "");
        CHECK(difference(result.at("working"), test.tensors.at("working"), 0) != "");
        CHECK(result.at("working").canaries_alive());
      });
    }
  }
}

TEST_CASE("adamw: many tensors at once get the bits of each alone") {
  // More than one upload of a GPU takes, most of them as small as norms; sizes about those of blocks;
  // tensors that do not begin at a multiple of four elements, with and without a rounded copy.
  std::vector<int64_t> sizes(4200, 3);
  for (const auto& [at, size] : std::vector<std::pair<size_t, int64_t>>{
           {0, 8192}, {1, 8193}, {2, 0}, {7, 20001}, {4095, 5}, {4096, 16384}, {4199, 0}}) {
    sizes[at] = size;
  }
  int64_t total = 0;
  for (const int64_t size : sizes) total += size + 1;
  const OpTest test = adamw(total, DType::bf16, kOptions);
  const auto cut = [&](Tensors& t) {
    const auto part = [&](const char* name, int64_t at, int64_t size) {
      const View all = t.at(name).view();
      auto* begin =
          static_cast<std::byte*>(all.raw()) + static_cast<size_t>(at) * size_of(all.dtype);
      return View(begin, all.dtype, 1, size);
    };
    std::vector<AdamWTensors> list;
    int64_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t n = sizes[i];
      list.push_back({part("gradient", at, n), part("master", at, n), part("moment1", at, n),
                      part("moment2", at, n), i % 3 == 0 ? View{} : part("working", at, n)});
      at += n + 1;  // an element between neighbours that must stay
    }
    return list;
  };
  for_each_back_end(test.scratch, [&](const OpSet& ops, Stream& stream) {
    Tensors together = test.tensors, alone = test.tensors;
    ops.adamw(stream, kOptions, cut(together));
    for (const AdamWTensors& one : cut(alone)) ops.adamw(stream, kOptions, {&one, 1});
    for (const char* name : {"gradient", "master", "moment1", "moment2", "working"}) {
      INFO(name);
      CHECK(difference(together.at(name), alone.at(name), 0) == "");
      CHECK(difference(together.at(name), test.tensors.at(name), 0) != "");
      const int64_t between = sizes[0];
      CHECK(together.at(name).get(0, between) == test.tensors.at(name).get(0, between));
    }
    ops.adamw(stream, kOptions, {});
  });
}

TEST_CASE("sum of squares: views of any size, more than one block") {
  const std::vector<std::pair<int64_t, int64_t>> shapes = {
      {1, 1}, {3, 33}, {1, 50000}, {0, 7}, {2, 200001}, {64, 4096}, {1, 5}};
  std::vector<Tensor> tensors;
  std::vector<ConstView> views;
  int64_t elements = 0;
  for (const auto& [rows, cols] : shapes) {
    tensors.push_back(Tensor(DType::f32, rows, cols).fill_random("x" + std::to_string(cols), 3));
    views.push_back(tensors.back().view());
    elements += rows * cols;
  }
  const auto scratch = [&](const OpSet& ops) {
    return ops.sum_squares_scratch(std::ssize(views), elements);
  };
  Tensor expected(DType::f64, 1, std::ssize(views));
  TestStream one(1, {});
  reference_ops().sum_squares(one, views, expected.view());
  for (const int workers : {1, 3, 8}) {
    for_each_back_end(scratch, [&](const OpSet& ops, Stream&) {
      TestStream stream(ops, workers, scratch(ops));
      Tensor sums(DType::f64, 1, std::ssize(views));
      ops.sum_squares(stream, views, sums.view());
      CHECK(difference(sums, expected, 1e-12) == "");
      CHECK(sums.get(0, 3) == 0);
    });
  }
}

TEST_CASE("sum of squares: not finite where an element is not") {
  const auto scratch = [](const OpSet& ops) { return ops.sum_squares_scratch(1, 3000); };
  for_each_back_end(scratch, [](const OpSet& ops, Stream& stream) {
    const auto sum_of = [&](const Tensor& x) {
      Tensor out(DType::f64, 1, 1);
      const ConstView view = x.view();
      ops.sum_squares(stream, {&view, 1}, out.view());
      return out.get(0, 0);
    };
    for (const double bad :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      Tensor x = Tensor(DType::f32, 1, 3000).fill_random("x");
      x.set(0, 2777, bad);
      CHECK(!std::isfinite(sum_of(x)));
    }
    // Squares that f32 cannot hold.
    CHECK(std::abs(sum_of(Tensor(DType::f32, 1, 2).assign({1e30, 1e-30})) / 1e60 - 1) < 1e-6);
  });
}
