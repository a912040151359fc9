// bench_rates [workers]: what the CPU op set reaches, as one JSON object: GFLOP/s of the best
// product of 256 to 1,024 rows with a weight of 512 x 1,024 in f32 and bf16, and GB/s of the AdamW
// sweep, 28 bytes a parameter. Also what the instructions alone reach, in registers: fused
// multiply-adds, dot products of pairs of bf16, AMX tiles (0: not there). scripts/bench cpu takes
// its bound from here and from torch.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu_kernels/cpu_info.h"
#include "cpu_kernels/cpu_ops.h"
#include "device/host_device.h"
#include "machine_rates.h"

using namespace hearth;
using namespace hearth::bench;

namespace {

constexpr double kWindow = 0.1;
constexpr int64_t kIn = 1024, kOut = 512, kMost = 1024;
constexpr int64_t kParameters = int64_t{32} << 20;

std::unique_ptr<Stream> make_stream(Device& device, int workers) {
  const ScratchNeed need =
      max_of(cpu_ops().linear_scratch(kMost, kOut, kIn, 0), cpu_ops().row_scratch(1, kIn));
  StreamOptions options;
  options.workers = workers;
  options.scratch_bytes = need.shared;
  options.worker_scratch_bytes = need.per_worker;
  return device.create_stream(options);
}

std::vector<float> numbers(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i % 101) - 50) * 1e-3f;
  }
  return values;
}

double best_product(Stream& stream, Compute compute) {
  const OpSet& ops = cpu_ops();
  std::vector<float> x = numbers(kMost * kIn), y = numbers(kMost * kOut), dw(kOut * kIn);
  const std::vector<float> plain = numbers(kOut * kIn);
  std::vector<bf16> rounded(plain.size());
  convert(DType::f32, plain.data(), DType::bf16, rounded.data(), kOut * kIn);
  const LinearView w{compute == Compute::bf16 ? ConstView(rounded.data(), DType::bf16, kOut, kIn)
                                              : ConstView(plain.data(), DType::f32, kOut, kIn),
                     {},
                     compute};
  const View gradient(dw.data(), DType::f32, kOut, kIn);
  double best = 0;
  for (int64_t m = 256; m <= kMost; m *= 2) {
    const View in(x.data(), DType::f32, m, kIn), out(y.data(), DType::f32, m, kOut);
    const auto measure = [&](const std::function<void()>& call) {
      const double time = best_time(host_stream(stream), kWindow, call);
      best = std::max(best, 2e-9 * static_cast<double>(m * kIn * kOut) / time);
    };
    measure([&] { ops.linear_forward(stream, in, w, out); });
    measure([&] { ops.linear_dgrad(stream, out, w, in, false); });
    measure([&] { ops.linear_wgrad(stream, out, in, w, {.weight = gradient}); });
  }
  return best;
}

double best_sweep(Stream& stream) {
  std::vector<float> g = numbers(kParameters), w = g, m(g.size()), v(g.size(), 1e-4f);
  const auto view = [](std::vector<float>& x) {
    return View(x.data(), DType::f32, 1, kParameters);
  };
  AdamWOptions options;
  options.lr = 1e-5;
  const AdamWTensors tensors{view(g), view(w), view(m), view(v)};
  const double time = best_time(host_stream(stream), 0.6, [&] {
    cpu_ops().adamw(stream, options, {&tensors, 1});
  });
  return 28e-9 * static_cast<double>(kParameters) / time;
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::max(1, std::atoi(argv[1]))
                               : static_cast<int>(std::thread::hardware_concurrency());
  const auto device = make_host_device(uint64_t{8} << 30);
  const auto stream = make_stream(*device, workers);
  HostStream& host = host_stream(*stream);
  const double f32 = best_product(*stream, Compute::f32);
  const double bf16 = best_product(*stream, Compute::bf16);
  std::printf(
      "{\"isa\": \"%s\", \"onednn\": \"%s\", \"workers\": %d, \"f32\": %.2f, \"bf16\": %.2f, "
      "\"adamw\": %.2f, \"fma\": %.2f, \"pairs\": %.2f, \"tiles\": %.2f}\n",
      cpu_isa().c_str(), onednn_version().c_str(), workers, f32, bf16, best_sweep(*stream),
      fma_rate(host), dot_rate(host), tile_rate(host));
}
