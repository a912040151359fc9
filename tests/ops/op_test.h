// The definition of an op's test. It names tensors and says how the op is called on them; from that
// one definition the op runs on every back end, on strided and dense tensors, with f32 and bf16
// products, on 1 to 8 workers, and is held to the reference in f64, whose own gradients are held to
// central differences.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ops/op_set.h"
#include "support/all_op_sets.h"
#include "support/tensor.h"
#include "support/test_stream.h"

namespace hearth::test {

/// One call of an op: which back end, on what.
struct Run {
  const OpSet& ops;
  Stream& stream;
  Tensors& tensors;
  Compute compute;

  Tensor& operator[](const std::string& name) const { return tensors.at(name); }
  /// Empty where no tensor has the name: an optional argument.
  View view(const std::string& name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? View() : found->second.view();
  }
  /// A map of these tensors; its low-rank pair is that of weight_a and weight_b, if there are any.
  LinearView linear(const std::string& weight, const std::string& bias = "",
                    const Dropout& dropout = {}) const {
    return {view(weight), view(bias), compute,
            LowRank{view(weight + "_a"), view(weight + "_b"), kScale, dropout}};
  }
  /// Where its gradients go: those that are there of dweight, dbias, dweight_a, dweight_b.
  LinearGradient gradient(const std::string& weight, const std::string& bias = "") const {
    return {view("d" + weight), bias.empty() ? View() : view("d" + bias), view("d" + weight + "_a"),
            view("d" + weight + "_b")};
  }
  static constexpr double kScale = 0.75;
  /// Copies elements, for ops that work in place.
  void copy(const std::string& from, const std::string& to) const {
    stream.synchronize();
    const Tensor& source = tensors.at(from);
    for (int64_t r = 0; r < source.rows(); ++r) {
      for (int64_t c = 0; c < source.cols(); ++c) tensors.at(to).set(r, c, source.get(r, c));
    }
  }
};

using Body = std::function<void(const Run&)>;

/// What benchmark mode times: one call of an op, and its work.
struct TimedCall {
  std::string name;  // "forward"
  Body body;
  double flops = 0;  // 0: `bytes` counts
  double bytes = 0;  // read and written at least
};

struct OpTest {
  /// Printed by benchmark mode and by failures: "linear", "rows 5, out 3, in 7, ...".
  std::string op, parameters;

  /// Inputs with their values; outputs with anything; gradients that are added to with what they
  /// had before. Activations are f32.
  Tensors tensors;
  Body forward;
  Body backward;  // may be absent
  std::function<ScratchNeed(const OpSet&)> scratch;

  /// What benchmark mode times, without the copies and conversions of `forward` and `backward`.
  std::vector<TimedCall> timed = {};

  /// For gradients by differences: the loss is sum <d_o, o> over the outputs o, where a d_o of one
  /// row counts for every row of o; `backward` must leave its gradient of each input x in d_x.
  std::vector<std::string> outputs, inputs;

  double tolerance = 1e-5;       // against the reference in f64, relative to the root mean square
  bool products = false;         // has matrix products: also run with Compute::bf16
  double bf16_tolerance = 1e-5;  // where intermediate results are rounded: flips to a neighbour

  /// Names the test and its parameters: described("linear", "rows", 5, "stored", DType::bf16).
  template <class... Pairs>
  OpTest& described(const std::string& of, const Pairs&... pairs) {
    op = of;
    parameters.clear();
    add_parameters(pairs...);
    return *this;
  }

  /// Adds a tensor with random elements.
  Tensor& random(const std::string& name, DType dtype, int64_t rows, int64_t cols,
                 double scale = 1);
  /// f32.
  Tensor& random(const std::string& name, int64_t rows, int64_t cols, double scale = 1) {
    return random(name, DType::f32, rows, cols, scale);
  }
  /// Adds the low-rank pair of a map and, if it is trained, its gradients, as inputs.
  void low_rank(const std::string& weight, int64_t out, int64_t in, int64_t rank, DType dtype,
                bool trained);
  /// i32 with these elements.
  Tensor& integers(const std::string& name, int64_t rows, int64_t cols,
                   const std::vector<double>& elements);

 private:
  static std::string text_of(DType type) { return std::string(hearth::name_of(type)); }
  static std::string text_of(bool value) { return value ? "yes" : "no"; }
  static std::string text_of(int64_t value) { return std::to_string(value); }
  static std::string text_of(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  }
  void add_parameters() {}
  template <class Value, class... Rest>
  void add_parameters(const char* key, const Value& value, const Rest&... rest) {
    parameters += (parameters.empty() ? "" : ", ") + std::string(key) + " " + text_of(value);
    add_parameters(rest...);
  }
};

/// While it lives, definitions give tests without tensors: for their parameters alone.
struct WithoutTensors {
  WithoutTensors();
  ~WithoutTensors();
};

/// A case of benchmark mode (tests/bench/bench_ops.cpp).
struct PerfCase {
  std::function<OpTest()> make;
  Compute compute = Compute::f32;
};
/// How benchmark mode and guards name it: the op, its parameters and the compute type.
std::string line_of(const PerfCase& perf);
/// The cases of all test files, in no order of files.
std::vector<PerfCase>& perf_cases();
/// Adds cases when the program starts: `const bool added = add_perf_cases({...});`
bool add_perf_cases(const std::vector<PerfCase>& cases);

/// On every back end: each tensor, inputs included, is what the reference in f64 makes of it;
/// nothing beside the tensors is touched; the bits are the same with 1, 2, 3, 5 and 8 workers.
void check_back_ends(const OpTest& test);

/// The reference's gradients in f64 agree with central differences to 1e-7. Integer tensors
/// (choices) must not change under the differences.
void check_gradients(const OpTest& test);

/// Both.
void check_op(const OpTest& test);

/// Calls f(ops, stream) for every back end, on 3 workers and with the scratch that `scratch` says.
/// No section a back end: inside a loop Catch2 would run it in the first round only.
void for_each_back_end(const std::function<ScratchNeed(const OpSet&)>& scratch,
                       const std::function<void(const OpSet&, Stream&)>& f);

/// Runs the body in f32 and returns the tensors.
Tensors run_op(const OpSet& ops, Stream& stream, Tensors tensors, const Body& body,
               Compute compute = Compute::f32);

}  // namespace hearth::test
