// bench_ops [workers] [hidden] [width]: rates of the CPU op set beside those of the machine.
// docs/benchmarks/ops-cpu.md keeps a run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "cpu_kernels/cpu_info.h"
#include "cpu_kernels/cpu_ops.h"
#include "device/host_device.h"
#include "machine_rates.h"

using namespace hearth;
using namespace hearth::bench;

namespace {

constexpr double kWindow = 0.3;
constexpr int64_t kRows[] = {1, 16, 64, 128, 256, 512};
constexpr int64_t kExperts = 8;

struct Matrix {
  std::vector<std::byte> data;
  View view;
  Matrix(DType type, int64_t rows, int64_t cols)
      : data(static_cast<size_t>(rows * cols) * size_of(type)),
        view(data.data(), type, rows, cols) {
    std::vector<float> row(static_cast<size_t>(cols));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        row[static_cast<size_t>(c)] = static_cast<float>((r * 31 + c * 17) % 101 - 50) * 1e-3f;
      }
      convert(DType::f32, row.data(), type, view.slice(r, 1).raw(), cols);
    }
  }
};

class Bench {
 public:
  Bench(int workers, int64_t hidden, int64_t width)
      : ops_(cpu_ops()),
        hidden_(hidden),
        width_(width),
        device_(make_host_device(uint64_t{8} << 30)) {
    const int64_t rows = 512 * kExperts;
    ScratchNeed need = max_of(ops_.linear_scratch(512, width, hidden, 0),
                              ops_.experts_scratch(rows, kExperts, hidden, width, 0));
    need = max_of(need, ops_.row_scratch(1024, hidden));
    StreamOptions options;
    options.workers = workers;
    options.scratch_bytes = need.shared;
    options.worker_scratch_bytes = need.per_worker;
    stream_ = device_->create_stream(options);
  }

  void linear(DType stored, Compute compute) {
    Matrix w(stored, width_, hidden_), dw(DType::f32, width_, hidden_);
    Matrix x(DType::f32, 512, hidden_), y(DType::f32, 512, width_);
    const LinearView map{w.view, {}, compute};
    for (const int64_t m : kRows) {
      const double flops = 2.0 * static_cast<double>(m * hidden_ * width_);
      const View in = x.view.slice(0, m), out = y.view.slice(0, m);
      begin("linear", stored, compute, m);
      report(flops, [&] { ops_.linear_forward(*stream_, in, map, out); });
      report(flops, [&] { ops_.linear_dgrad(*stream_, out, map, in, false); });
      report(flops, [&] { ops_.linear_wgrad(*stream_, out, in, map, {.weight = dw.view}); });
      std::printf("\n");
    }
  }

  void experts(DType stored, Compute compute) {
    std::vector<std::unique_ptr<Matrix>> owned;
    const auto make = [&](DType type, int64_t rows, int64_t cols) {
      return owned.emplace_back(std::make_unique<Matrix>(type, rows, cols))->view;
    };
    std::vector<ExpertView> weights;
    std::vector<ExpertGradient> gradients;
    for (int64_t e = 0; e < kExperts; ++e) {
      weights.push_back({{make(stored, width_, hidden_), {}, compute},
                         {make(stored, width_, hidden_), {}, compute},
                         {make(stored, hidden_, width_), {}, compute}});
      const auto gradient = [&](int64_t out, int64_t in) {
        return LinearGradient{.weight = make(DType::f32, out, in)};
      };
      gradients.push_back(
          {gradient(width_, hidden_), gradient(width_, hidden_), gradient(hidden_, width_)});
    }
    const std::vector<ExpertGradient> frozen(kExperts);
    for (const int64_t m : kRows) {
      const int64_t rows = m * kExperts;
      Matrix x(DType::f32, rows, hidden_), y(DType::f32, rows, hidden_),
          dx(DType::f32, rows, hidden_), gate(DType::f32, rows, width_),
          up(DType::f32, rows, width_), weight(DType::f32, 1, rows), dweight(DType::f32, 1, rows);
      std::vector<int32_t> offsets;
      for (int64_t e = 0; e <= kExperts; ++e) offsets.push_back(static_cast<int32_t>(e * m));
      const ConstView at(offsets.data(), DType::i32, 1, kExperts + 1);
      const double flops = 6.0 * static_cast<double>(rows * hidden_ * width_);
      begin("experts", stored, compute, m);
      const auto backward = [&](const std::vector<ExpertGradient>& to) {
        ops_.experts_backward(*stream_, y.view, weight.view, x.view, at, weights, gate.view,
                              up.view, dx.view, dweight.view, to);
      };
      report(flops, [&] {
        ops_.experts_forward(*stream_, x.view, at, weights, gate.view, up.view, y.view);
      });
      report(flops, [&] { backward(frozen); });
      report(2 * flops, [&] { backward(gradients); });
      std::printf("\n");
    }
  }

  void adamw() {
    constexpr int64_t kParameters = int64_t{32} << 20;
    const double triad = triad_rate(host_stream(*stream_), kParameters);
    Matrix g(DType::f32, 1, kParameters), w(DType::f32, 1, kParameters),
        m(DType::f32, 1, kParameters), v(DType::f32, 1, kParameters);
    for (int64_t i = 0; i < kParameters; ++i) v.view.as<float>()[i] = 1e-4f;
    AdamWOptions options;
    options.lr = 1e-5;
    const AdamWTensors tensors{g.view, w.view, m.view, v.view};
    const double time = best_time(host_stream(*stream_), 1.5, [&] {
      ops_.adamw(*stream_, options, {&tensors, 1});
    });
    const double rate = 32.0 * kParameters / time / 1e9;
    std::printf(
        "adamw, %lld parameters: %.1f GB/s of 32 bytes a parameter; triad %.1f GB/s; "
        "ratio %.2f; %.2f ns a parameter\n",
        static_cast<long long>(kParameters), rate, triad, rate / triad, time / kParameters * 1e9);
  }

 private:
  void begin(const char* op, DType stored, Compute compute, int64_t m) {
    std::printf("%-8s %-5s %-5s %5lld ", op, std::string(name_of(stored)).c_str(),
                compute == Compute::bf16 ? "bf16" : "f32", static_cast<long long>(m));
  }
  // Op and peak in alternating windows, best against best.
  void report(double flops, const std::function<void()>& call) {
    double time = 1e30, peak = 0;
    for (int i = 0; i < 3; ++i) {
      peak = std::max(peak, fma_rate(host_stream(*stream_)));
      time = std::min(time, best_time(host_stream(*stream_), kWindow / 3, call));
    }
    const double rate = flops / time / 1e9;
    std::printf(" | %7.1f %5.2f", rate, rate / peak);
    std::fflush(stdout);
  }

  const OpSet& ops_;
  int64_t hidden_, width_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto workers =
      static_cast<int>(argument(argc, argv, 1, std::thread::hardware_concurrency()));
  const int64_t hidden = argument(argc, argv, 2, 2048), width = argument(argc, argv, 3, 768);
  std::printf("%s, oneDNN %s, %d workers, hidden %lld, width %lld\n", cpu_isa().c_str(),
              onednn_version().c_str(), workers, static_cast<long long>(hidden),
              static_cast<long long>(width));
  for (const std::string& line : matmul_variants()) std::printf("%s\n", line.c_str());
  Bench bench(workers, hidden, width);
  std::printf(
      "\nGFLOP/s and share of the FMA rate on all workers\n"
      "op       weight compute  M  | forward       | data gradient | weight gradient"
      " (experts: whole backward)\n");
  bench.linear(DType::f32, Compute::f32);
  bench.linear(DType::bf16, Compute::f32);
  bench.linear(DType::bf16, Compute::bf16);
  bench.experts(DType::f32, Compute::f32);
  bench.experts(DType::bf16, Compute::bf16);
  bench.adamw();
}
