#include "runtime/shared_speed.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/pool.h"
#include "base/stopwatch.h"
#include "runtime/rate_bench.h"

namespace hearth {

namespace {

constexpr double kWindow = .05;  // seconds of a measurement
constexpr int kTries = 2;        // the best counts: neighbours on the machine take from the others

/// Work to repeat on a stream of its own.
class Repeated {
 public:
  virtual ~Repeated() = default;
  virtual void once() = 0;
};

class Products final : public Repeated {
 public:
  Products(Device& device, const RateOptions& options)
      : ops_(options.ops),
        bench_(device, options, options.ops.linear_scratch(kRows, kOut, kIn, 0)),
        w_{bench_.matrix(options.compute == Compute::bf16 ? DType::bf16 : DType::f32, kOut, kIn),
           {},
           options.compute},
        x_(bench_.matrix(DType::f32, kRows, kIn)),
        y_(bench_.matrix(DType::f32, kRows, kOut)) {}
  void once() override {
    ops_.linear_forward(bench_.stream(), x_, w_, y_);
    bench_.stream().synchronize();
  }

 private:
  static constexpr int64_t kRows = 128, kOut = 256, kIn = 256;
  const OpSet& ops_;
  RateBench bench_;
  const LinearView w_;
  const View x_, y_;
};

/// The optimizer, over more than caches hold if the memory allows it.
class Sweeps final : public Repeated {
 public:
  Sweeps(Device& device, const RateOptions& options)
      : ops_(options.ops), bench_(device, options, options.ops.row_scratch(1, 1024)) {
    constexpr int64_t kMost = 1 << 20;
    const auto n =
        std::clamp<int64_t>(static_cast<int64_t>(options.max_bytes / 32), 1 << 12, kMost);
    tensors_ = {bench_.matrix(DType::f32, 1, n), bench_.matrix(DType::f32, 1, n),
                bench_.matrix(DType::f32, 1, n), bench_.positive(1, n), View{}};
    adamw_.lr = 1e-5;
  }
  void once() override {
    ops_.adamw(bench_.stream(), adamw_, {&tensors_, 1});
    bench_.stream().synchronize();
  }

 private:
  const OpSet& ops_;
  RateBench bench_;
  AdamWTensors tensors_;
  AdamWOptions adamw_;
};

using Make = std::function<std::unique_ptr<Repeated>()>;

/// How often so many threads at once do it per second and thread.
double rate_of(const Make& make, int64_t threads) {
  std::barrier begin(threads);
  std::atomic<int64_t> done{0};
  const auto work = [&] {
    const std::unique_ptr<Repeated> own = make();
    own->once();
    begin.arrive_and_wait();
    const Stopwatch watch;
    int64_t count = 0;
    double last = 0;
    while (last < kWindow) {
      own->once();
      ++count;
      last = watch.seconds();
    }
    done += static_cast<int64_t>(1e6 * static_cast<double>(count) / last);
  };
  std::vector<std::thread> others;
  for (int64_t t = 0; t < threads; ++t) {
    others.emplace_back([&] {
      unbind_thread();  // the thread that made this one may be bound
      work();
    });
  }
  for (std::thread& other : others) other.join();
  return static_cast<double>(done) / 1e6 / static_cast<double>(threads);
}

double factor_of(const Make& make, int64_t together) {
  double alone = 0, beside = 0;
  for (int i = 0; i < kTries; ++i) {
    alone = std::max(alone, rate_of(make, 1));
    beside = std::max(beside, rate_of(make, together));
  }
  return std::max(1.0, alone / beside);
}

}  // namespace

SharedSpeed measure_shared_speed(Device& device, const RateOptions& given, int64_t ranks) {
  RateOptions options = given;
  options.cores.clear();
  return {factor_of([&] { return std::make_unique<Products>(device, options); }, ranks),
          factor_of([&] { return std::make_unique<Sweeps>(device, options); }, ranks)};
}

}  // namespace hearth
