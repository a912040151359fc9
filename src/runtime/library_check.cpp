#include "runtime/library_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "runtime/trial.h"

namespace hearth {
namespace {

// Relative norms of differences that rounding explains: sums in another order, in f32; bf16 results
// of intermediate steps, which fall to a neighbour.
constexpr double kSums = 1e-4, kRounded = 2e-2;

/// |a - b| / |b|; infinite where one is no number.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = double{a[i]} - double{b[i]};
    squares += d * d;
    size += double{b[i]} * double{b[i]};
  }
  if (squares == 0) return 0;
  const double relative = std::sqrt(squares / size);
  return std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
}

class LibraryCheck {
 public:
  LibraryCheck(Device& device, const OpSet& ops) : device_(device), ops_(ops) {
    for (const OpLibrary& library : ops.libraries()) reasons_[library.name];
  }

  std::vector<std::string> run() {
    if (reasons_.empty()) return {};
    try {
      for (const Compute compute : {Compute::f32, Compute::bf16}) {
        dense(compute);
        experts(compute);
        attention(compute);
      }
    } catch (...) {
      take_up_again();
      throw;
    }
    take_up_again();
    std::vector<std::string> lines;
    for (const auto& [name, reason] : reasons_) {
      if (!reason.empty()) lines.push_back(name + " is not used: " + reason);
    }
    return lines;
  }

 private:
  void take_up_again() {
    for (const auto& [name, reason] : reasons_) ops_.call_library(name, reason.empty());
  }

  void compare(const std::string& what, double limit, Trial& trial,
               const std::function<void(Stream&)>& problem) {
    for (const auto& [name, reason] : reasons_) ops_.call_library(name, false);
    const Trial::Results expected = trial.run(problem);
    for (auto& [name, reason] : reasons_) {
      if (!reason.empty()) continue;
      ops_.call_library(name, true);
      try {
        const Trial::Results actual = trial.run(problem);
        double worst = 0;
        for (size_t i = 0; i < actual.size(); ++i) {
          worst = std::max(worst, difference(actual[i], expected[i]));
        }
        if (!(worst <= limit)) {
          reason = "results of " + what + " differ from those of own kernels by " +
                   std::to_string(worst) + " (relative), " + std::to_string(limit) +
                   " would be rounding";
        }
      } catch (const Error& error) {
        require_whole_device(name, what);
        reason = what + ": " + error.what();
      }
      ops_.call_library(name, false);
    }
  }

  /// A device that a library broke cannot go on without it, either; the next process can.
  void require_whole_device(const std::string& library, const std::string& what) const {
    try {
      device_.check();
    } catch (const Error& broken) {
      throw Error(broken.code(), library + " broke the device in a trial of " + what +
                                     " (HEARTH_WITHOUT=" + library +
                                     " leaves it out): " + broken.what());
    }
  }

  static const char* suffix(Compute compute) { return compute == Compute::bf16 ? " in bf16" : ""; }
  static DType stored(Compute compute) {
    return compute == Compute::bf16 ? DType::bf16 : DType::f32;
  }

  void dense(Compute compute) {
    constexpr int64_t kRows = 200, kIn = 192, kOut = 320;
    Trial t(device_, ops_.linear_scratch(kRows, kOut, kIn, 0));
    const LinearView w{t.random(stored(compute), kOut, kIn), {}, compute};
    const View x = t.random(DType::f32, kRows, kIn), dy = t.random(DType::f32, kRows, kOut);
    const View y = t.output(kRows, kOut), dx = t.output(kRows, kIn), dw = t.output(kOut, kIn);
    compare(std::string("a linear map") + suffix(compute), kSums, t, [&](Stream& stream) {
      ops_.linear_forward(stream, x, w, y);
      for (const bool again : {false, true}) {
        ops_.linear_dgrad(stream, dy, w, dx, again);
        ops_.linear_wgrad(stream, dy, x, w, {.weight = dw});
      }
    });
  }

  void experts(Compute compute) {
    constexpr int64_t kHidden = 256, kWidth = 192;
    // Rows of the experts: none, one, less than a tile, some tiles; empty ones at both ends.
    const std::vector<int32_t> offsets = {0, 0, 1, 1, 128, 385, 400, 400};
    const auto count = static_cast<int64_t>(offsets.size()) - 1, rows = int64_t{offsets.back()};
    Trial t(device_, ops_.experts_scratch(rows, count, kHidden, kWidth, 0, Compute::bf16, rows));
    const auto map = [&](int64_t out, int64_t in) {
      return LinearView{t.random(stored(compute), out, in, 0.2), {}, compute};
    };
    std::vector<ExpertView> weights;
    std::vector<ExpertGradient> gradients;
    for (int64_t e = 0; e < count; ++e) {
      weights.push_back({map(kWidth, kHidden), map(kWidth, kHidden), map(kHidden, kWidth)});
      gradients.push_back({{.weight = t.output(kWidth, kHidden)},
                           {.weight = t.output(kWidth, kHidden)},
                           {.weight = t.output(kHidden, kWidth)}});
    }
    gradients[4] = {};  // frozen
    const View at = t.integers(offsets), x = t.random(DType::f32, rows, kHidden);
    const View dy = t.random(DType::f32, rows, kHidden), share = t.random(DType::f32, 1, rows);
    const View gate = t.output(rows, kWidth), up = t.output(rows, kWidth);
    const View y = t.output(rows, kHidden), dx = t.output(rows, kHidden);
    const View dshare = t.output(1, rows);
    compare(std::string("experts") + suffix(compute), compute == Compute::f32 ? kSums : kRounded, t,
            [&](Stream& stream) {
              ops_.experts_forward(stream, x, at, weights, gate, up, y);
              ops_.experts_backward(stream, dy, share, x, at, weights, gate, up, dx, dshare,
                                    gradients);
            });
  }

  void attention(Compute compute) {
    constexpr int64_t kRows = 350, kHeads = 4, kKvHeads = 2;
    // Few shapes: a library may take long to prepare one.
    for (const auto& [dim, window] : {std::pair<int64_t, int64_t>{64, 40}, {128, 0}}) {
      const AttentionShape shape{
          kHeads, kKvHeads, dim, window, 1 / std::sqrt(static_cast<double>(dim)), compute};
      Trial t(device_, ops_.attention_scratch(shape, kRows, kRows));
      const View ends = t.integers({0, 130, 131, kRows});
      const SequenceOffsets sequences{ends, ends};
      const View q = t.random(DType::f32, kRows, kHeads * dim, 3);
      const View k = t.random(DType::f32, kRows, kKvHeads * dim);
      const View v = t.random(DType::f32, kRows, kKvHeads * dim);
      const View dout = t.random(DType::f32, kRows, kHeads * dim);
      const View out = t.output(kRows, kHeads * dim), log_sum = t.output(kRows, kHeads);
      const View dq = t.output(kRows, kHeads * dim), dk = t.output(kRows, kKvHeads * dim);
      const View dv = t.output(kRows, kKvHeads * dim);
      compare(std::string("attention") + suffix(compute),
              compute == Compute::f32 ? kSums : kRounded, t, [&](Stream& stream) {
                ops_.attention_forward(stream, shape, sequences, q, k, v, out, log_sum);
                ops_.attention_backward(stream, shape, sequences, dout, q, k, v, out, log_sum, dq,
                                        dk, dv);
              });
    }
  }

  Device& device_;
  const OpSet& ops_;
  std::map<std::string, std::string> reasons_;  // by name; empty: nothing against it
};

}  // namespace

std::vector<std::string> check_libraries(Device& device, const OpSet& ops) {
  return LibraryCheck(device, ops).run();
}

LibraryVerdict check_libraries_once(Device& device, const OpSet& ops,
                                    const RememberedChecks& checks) {
  std::string subject;  // on its own lines: what computes, where, and by which libraries
  for (const OpLibrary& library : ops.libraries()) {
    subject += '\n' + library.name + ' ' + library.version;
  }
  if (subject.empty()) return {};
  const bool known = !device.identity().empty();
  subject = "libraries of the op set " + std::string(ops.name()) + "\n" + device.identity() + "\n" +
            identity_of_program() + subject;
  if (known && checks.has_passed(subject)) return {{}, true};
  LibraryVerdict verdict{check_libraries(device, ops), false};
  if (known && verdict.lines.empty()) checks.remember(subject);
  return verdict;
}

}  // namespace hearth
