#include "op_test.h"

#include <algorithm>
#include <cmath>

#include "base/sanitized.h"

namespace hearth::test {
namespace {

Tensors in_f64(const Tensors& tensors) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    result[name] = tensor.as(tensor.floating() ? DType::f64 : tensor.dtype(), 0);
  }
  return result;
}

Tensors padded(const Tensors& tensors, int64_t padding) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    // A vector is dense: it has one row, whose end is the canary.
    result[name] = tensor.as(tensor.dtype(), tensor.rows() > 1 ? padding : 0);
  }
  return result;
}

void run_both(const OpTest& test, const OpSet& ops, int workers, Tensors& tensors,
              Compute compute) {
  TestStream stream(ops, workers, test.scratch ? test.scratch(ops) : ScratchNeed{});
#ifdef HEARTH_EMULATED_OPS
  // Blocks and threads of the second run start in the opposite order.
  cuda_emulator::run_backwards(ops.name() == "cuda-emulated" && workers > 1);
#endif
  const Run run{ops, stream, tensors, compute};
  test.forward(run);
  if (test.backward) test.backward(run);
  run.stream.synchronize();
}

bool is_gpu(const OpSet& ops) { return ops.name().starts_with("cuda"); }

/// The reference runs on the calling thread whatever the stream has. Sanitizers look for faults other
/// than wrong bits, which fewer workers show, too.
std::vector<int> worker_counts(const OpSet& ops) {
  if (&ops == &reference_ops()) return {1};
  // A GPU has no workers: the second run shows that bits repeat.
  if (is_gpu(ops)) return kSanitized ? std::vector{1} : std::vector{1, 2};
  return kSanitized ? std::vector{1, 5} : std::vector{1, 2, 3, 5, 8};
}

/// Elements between the rows of a matrix. Instrumented emulation of a GPU takes minutes, so there it
/// has them or not by turns.
std::vector<int64_t> paddings(const OpSet& ops) {
  static int64_t turn = 0;
  if (kSanitized && is_gpu(ops)) return {turn++ % 3 == 0 ? 0 : 3};
  return {0, 3};
}

/// The outputs after a forward with element (r, c) of `input` moved by `step`; weighted by their
/// gradients they are the loss.
std::vector<double> moved_outputs(const OpTest& test, Tensors tensors, const std::string& input,
                                  int64_t r, int64_t c, double step, const Tensors& frozen) {
  Tensor& x = tensors.at(input);
  x.set(r, c, x.get(r, c) + step);
  const OpSet& ops = reference_ops();
  TestStream stream(1, test.scratch ? test.scratch(ops) : ScratchNeed{});
  test.forward({ops, stream, tensors, Compute::f64});
  for (const auto& [name, tensor] : tensors) {
    if (tensor.floating()) continue;
    INFO(name << " changed: the values are too close to a tie for differences");
    REQUIRE(tensor.same_bits(frozen.at(name)));
  }
  std::vector<double> weighted;
  for (const std::string& output : test.outputs) {
    const Tensor &o = tensors.at(output), &d = tensors.at("d" + output);
    for (int64_t i = 0; i < o.size(); ++i) {
      const int64_t row = i / o.cols(), col = i % o.cols();
      weighted.push_back(o.get(row, col) * d.get(d.rows() == 1 ? 0 : row, col));
    }
  }
  return weighted;
}

bool without_tensors = false;

double difference_of_sums(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] - b[i];
  return sum;
}

}  // namespace

Tensor& OpTest::random(const std::string& name, DType dtype, int64_t rows, int64_t cols,
                       double scale) {
  if (without_tensors) return tensors[name];
  return tensors[name] = Tensor(dtype, rows, cols).fill_random(name, scale);
}

void OpTest::low_rank(const std::string& weight, int64_t out, int64_t in, int64_t rank, DType dtype,
                      bool trained) {
  random(weight + "_a", dtype, rank, in);
  random(weight + "_b", dtype, out, rank);
  if (!trained) return;
  random("d" + weight + "_a", rank, in);
  random("d" + weight + "_b", out, rank);
  inputs.push_back(weight + "_a");
  inputs.push_back(weight + "_b");
}

Tensor& OpTest::integers(const std::string& name, int64_t rows, int64_t cols,
                         const std::vector<double>& elements) {
  if (without_tensors) return tensors[name];
  return tensors[name] = Tensor(DType::i32, rows, cols).assign(elements);
}

WithoutTensors::WithoutTensors() { without_tensors = true; }
WithoutTensors::~WithoutTensors() { without_tensors = false; }

std::string line_of(const PerfCase& perf) {
  const WithoutTensors parameters_alone;
  const OpTest test = perf.make();
  return test.op + ": " + test.parameters + (perf.compute == Compute::bf16 ? ", in bf16" : "");
}

std::vector<PerfCase>& perf_cases() {
  static std::vector<PerfCase> cases;
  return cases;
}

bool add_perf_cases(const std::vector<PerfCase>& cases) {
  perf_cases().insert(perf_cases().end(), cases.begin(), cases.end());
  return true;
}

void check_back_ends(const OpTest& test) {
  INFO(test.op << ": " << test.parameters);
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (compute == Compute::bf16 && !test.products) continue;
    Tensors expected = in_f64(test.tensors);
    run_both(test, reference_ops(), 1, expected, compute);
    for (const OpSet* ops : all_op_sets()) {
      if (!ops->supports(DType::f32, compute)) continue;
      for (const int64_t padding : paddings(*ops)) {
        Tensors with_one_worker;
        for (const int workers : worker_counts(*ops)) {
          Tensors actual = padded(test.tensors, padding);
          run_both(test, *ops, workers, actual, compute);
          for (const auto& [name, tensor] : actual) {
            INFO(name << " on " << ops->name() << ", "
                      << (compute == Compute::bf16 ? "bf16" : "f32") << " products, " << workers
                      << " workers, rows " << padding << " apart");
            CHECK(difference(tensor, expected.at(name),
                             compute == Compute::bf16 ? test.bf16_tolerance : test.tolerance) ==
                  "");
            CHECK(tensor.canaries_alive());
            if (workers > 1) CHECK(tensor.same_bits(with_one_worker.at(name)));
          }
          if (workers == 1) with_one_worker = actual;
        }
      }
    }
  }
}

void check_gradients(const OpTest& test) {
  INFO(test.op << ": " << test.parameters);
  Tensors base = in_f64(test.tensors);
  for (const std::string& input : test.inputs) base.at("d" + input).fill(0);
  Tensors result = base;
  run_both(test, reference_ops(), 1, result, Compute::f64);
  Tensors forward_only = base;
  {
    TestStream stream(1, test.scratch ? test.scratch(reference_ops()) : ScratchNeed{});
    test.forward({reference_ops(), stream, forward_only, Compute::f64});
  }

  constexpr double kStep = 1e-3;  // with five points the truncation is of its fourth power
  for (const std::string& input : test.inputs) {
    const Tensor& x = base.at(input);
    Tensor numeric = result.at("d" + input);
    double largest = 0;
    // Under a sanitizer a few elements: the same code computes all.
    for (int64_t i = 0; i < x.size(); i += kSanitized ? 1 + x.size() / 3 : 1) {
      const int64_t r = i / x.cols(), c = i % x.cols();
      const auto at = [&](double step) {
        return moved_outputs(test, base, input, r, c, step, forward_only);
      };
      const double d1 = difference_of_sums(at(kStep), at(-kStep));
      const double d2 = difference_of_sums(at(2 * kStep), at(-2 * kStep));
      numeric.set(r, c, (8 * d1 - d2) / (12 * kStep));
      largest = std::max(largest, std::abs(numeric.get(r, c)));
    }
    INFO("gradient of " << input);
    CHECK((largest > 0 || kSanitized));
    CHECK(difference(result.at("d" + input), numeric, 1e-7) == "");
  }
}

void check_op(const OpTest& test) {
  check_back_ends(test);
  // Of the reference; not again where other back ends alone were asked for.
  if (std::ranges::count(all_op_sets(), &reference_ops()) > 0) check_gradients(test);
}

void for_each_back_end(const std::function<ScratchNeed(const OpSet&)>& scratch,
                       const std::function<void(const OpSet&, Stream&)>& f) {
  for (const OpSet* ops : all_op_sets()) {
    INFO("on " << ops->name());
    TestStream stream(*ops, 3, scratch ? scratch(*ops) : ScratchNeed{});
    f(*ops, stream);
  }
}

Tensors run_op(const OpSet& ops, Stream& stream, Tensors tensors, const Body& body,
               Compute compute) {
  body({ops, stream, tensors, compute});
  stream.synchronize();
  return tensors;
}

}  // namespace hearth::test
