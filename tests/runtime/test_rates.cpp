// Measurements of a device: what they compute on is made there, and what a link gives is known or
// measured.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "device/cuda_device.h"
#include "device/cuda_stream.h"
#include "device/host_device.h"
#include "device/virtual_device.h"
#include "runtime/cost_rates.h"
#include "runtime/link_rates.h"
#include "runtime/rate_bench.h"
#include "runtime/recording_ops.h"
#include "runtime/steps.h"
#include "support/fake_cuda.h"

namespace hearth::test {
namespace {

/// Copies over the links of virtual devices ask it for the time, and nothing else does.
struct CountingClock final : LinkClock {
  double now() override { return static_cast<double>(++copies); }
  void sleep_until(double) override {}
  int copies = 0;
};

std::unique_ptr<Device> slow_device(CountingClock& clock) {
  VirtualOptions options;
  options.h2d = 10e6;
  options.d2h = 20e6;
  options.latency = 0.5;
  return make_virtual_device(options, clock);
}

RateOptions small_options() {
  RateOptions options{cpu(), Compute::f32, 1, {}, 0, 0};
  options.max_bytes = 1 << 20;
  options.parameters = 5000;
  return options;
}

std::vector<std::byte> read(Device& device, Stream& stream, const View& v) {
  const size_t bytes = static_cast<size_t>(v.rows * v.cols) * size_of(v.dtype);
  const auto pinned = device.reserve("here", SpaceKind::pinned, bytes);
  device.copy(stream, pinned->data(), v.data, bytes);
  stream.synchronize();
  return {pinned->data(), pinned->data() + bytes};
}

std::vector<float> floats(Device& device, Stream& stream, const View& v) {
  const std::vector<std::byte> bytes = read(device, stream, v);
  std::vector<float> values(static_cast<size_t>(v.rows * v.cols));
  convert(v.dtype, bytes.data(), DType::f32, values.data(), std::ssize(values));
  return values;
}

/// What the ops of a measurement need of their matrices.
void check_matrices(Device& device) {
  RateBench bench(device, small_options(), {});
  for (const DType type : {DType::f32, DType::bf16}) {
    const int64_t rows = 300, cols = 64;
    const std::vector<float> values =
        floats(device, bench.stream(), bench.matrix(type, rows, cols));
    double sum = 0;
    for (const float x : values) {
      REQUIRE(std::abs(x) > 1e-4);
      REQUIRE(std::abs(x) < 0.1);
      sum += double{x};
    }
    CHECK(std::abs(sum / static_cast<double>(values.size())) < 1e-3);
    CHECK(std::set<float>(values.begin(), values.end()).size() > 4);
    CHECK(!std::equal(values.begin(), values.begin() + cols, values.begin() + cols));
  }
  for (const float x : floats(device, bench.stream(), bench.positive(3, 50))) {
    REQUIRE(x > 1e-6F);
    REQUIRE(x < 1e-2F);
  }
  CHECK(floats(device, bench.stream(), bench.matrix(DType::f32, 1, 1)).size() == 1);
  const std::vector<int32_t> integers{0, 7, 300, 70000, -2};
  const auto bytes = read(device, bench.stream(), bench.integers(integers));
  CHECK(std::memcmp(bytes.data(), integers.data(), bytes.size()) == 0);
}

TEST_CASE("rates: matrices hold small numbers, on a device that the host reaches and on a GPU") {
  check_matrices(*make_host_device(uint64_t{1} << 30));
  check_matrices(*make_virtual_device({}));
  FakeCuda cuda;
  const CudaDeviceOptions gpu;
  check_matrices(*make_cuda_devices(cuda, {&gpu, 1}).devices.front());
}

TEST_CASE("rates: a measurement copies nothing over the link of its device") {
  CountingClock clock;
  const auto device = slow_device(clock);
  const TinyModel model(tiny_config(), cpu(), DType::f32);
  const RunShapes shapes{model.spec, DType::f32, DType::bf16, true, true, 40, 20};
  const MachineRates best = measure_rates(*device, small_options());
  CHECK(best.flops_per_s > 0);
  const CostRates rates = measure_costs(*device, small_options(), shapes, best);
  CHECK(rates.experts_forward.at(4) > 0);
  CHECK(rates.loss > 0);
  CHECK(clock.copies == 0);
}

TEST_CASE("rates: the links of a virtual device are known, and nothing is copied to learn them") {
  CountingClock clock;
  const LinkRates links = measure_links(*slow_device(clock), uint64_t{1} << 30);
  CHECK(links.in.bytes_per_s == 10e6);
  CHECK(links.out.bytes_per_s == 20e6);
  CHECK(links.in.latency_s == 0.5);
  CHECK(links.out.latency_s == 0.5);
  CHECK(clock.copies == 0);

  // A link below a slower root complex, and one that has no limit of its own.
  VirtualOptions options;
  options.h2d = 3e6;
  options.root = std::make_shared<RootComplex>(2e6);
  const LinkRates shared = measure_links(*make_virtual_device(options), 0);
  CHECK(shared.in.bytes_per_s == 2e6);
  CHECK(shared.out.bytes_per_s == 2e6);
  options.root = nullptr;
  CHECK(measure_links(*make_virtual_device(options), 0).out.bytes_per_s == 0);
}

TEST_CASE("rates: the link of a GPU is measured from pinned memory, within the memory given") {
  FakeCuda cuda;
  const CudaDeviceOptions gpu;
  CudaDevices made = make_cuda_devices(cuda, {&gpu, 1});
  Device& device = *made.devices.front();
  const int64_t handles = cuda.live_handles();
  for (const uint64_t most : {uint64_t{0}, uint64_t{3} << 20, uint64_t{1} << 30}) {
    const LinkRates links = measure_links(device, most);
    for (const LinkRate& link : {links.in, links.out}) {
      CHECK(link.bytes_per_s > 0);
      CHECK(link.latency_s > 0);
    }
    const uint64_t least = 1 << 20, largest = 16 << 20;
    CHECK(cuda.largest_copy() == std::clamp(most, least, largest));
  }
  CHECK(cuda.unpinned_copies() == 0);
  CHECK(cuda.device_bytes(0) == 0);
  CHECK(cuda.pinned_bytes() == 0);
  CHECK(cuda.live_handles() == handles);
}

/// A model whose problems are larger than those that a CPU is measured by.
ModelSpec large_model() {
  ModelSpec spec = TinyModel(tiny_config(), cpu(), DType::f32).spec;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 32;
  spec.experts = 8;
  spec.experts_per_token = 2;
  spec.expert_width = 16;
  spec.vocabulary = 2500;
  return spec;
}

struct FakeGpu {
  explicit FakeGpu(const FakeCudaOptions& options = {}, uint64_t budget = 0) : cuda(options) {
    CudaDeviceOptions gpu;
    gpu.budget = budget;
    made = make_cuda_devices(cuda, {&gpu, 1});
  }
  Device& device() { return *made.devices.front(); }
  FakeCuda cuda;
  CudaDevices made;
};

RateOptions gpu_options(uint64_t max_bytes) {
  RateOptions options{recording_ops(), Compute::f32, 1, {}, 0, 0};
  options.max_bytes = max_bytes;
  options.parameters = 30'000;
  return options;
}

TEST_CASE("rates: a GPU's own clock times the work alone, and no wait of the host") {
  FakeGpu gpu;  // each piece of work takes a millisecond of its clock
  RateBench bench(gpu.device(), gpu_options(1 << 20), {});
  int calls = 0;
  const auto pieces = [&](int n) {
    return bench.shortest([&, n] {
      ++calls;
      for (int i = 0; i < n; ++i) {
        enqueue_on_fake_stream(cuda_stream(bench.stream()).handle(), [] {});
      }
    });
  };
  CHECK(std::abs(pieces(3) - 3e-3) < 1e-9);
  CHECK(calls < 8);
  CHECK(std::abs(pieces(1) - 1e-3) < 1e-9);
  CHECK(pieces(0) > 0);  // a rate is finite
}

TEST_CASE("rates: short work of a GPU is repeated between two events") {
  FakeCudaOptions options;
  options.seconds_per_work = 1e-5;
  FakeGpu gpu(options);
  RateBench bench(gpu.device(), gpu_options(1 << 20), {});
  int calls = 0;
  const double seconds = bench.shortest([&] {
    ++calls;
    enqueue_on_fake_stream(cuda_stream(bench.stream()).handle(), [] {});
  });
  CHECK(std::abs(seconds - 1e-5) < 1e-9);
  CHECK(calls > 20);
}

TEST_CASE("rates: a GPU is measured by problems of the run's own size") {
  FakeGpu gpu;
  const ModelSpec spec = large_model();
  const RunShapes shapes{spec, DType::f32, DType::f32, true, true, 2048, 512};
  seen_sizes() = {};
  const CostRates rates =
      measure_costs(gpu.device(), gpu_options(uint64_t{16} << 20), shapes, {1e12, 1e9});
  const SeenSizes& seen = seen_sizes();
  CHECK(seen.linear_rows == 2048);
  CHECK(seen.linear_in == 64);
  CHECK(seen.linear_out == 128);
  CHECK(seen.experts == 8);
  CHECK(seen.expert_rows == 2048 * 2);
  CHECK(seen.attention_rows == 2048);
  CHECK(seen.sequences == 4);
  CHECK(seen.heads == 4);
  CHECK(seen.vocabulary == 2500);
  CHECK(seen.loss_rows > 512);
  CHECK(seen.row_elements == 2048 * 64);
  CHECK(seen.parameters == 30'000);
  // An op is a millisecond of the fake's clock.
  const double flops = 2.0 * 2048 * 64 * 128;
  CHECK(std::abs(rates.linear_forward.at(2048) - flops / 1e-3) < 1e-6 * flops / 1e-3);
  CHECK(std::abs(rates.linear_backward.at(2048) - 2 * flops / 2e-3) < 1e-6 * flops / 1e-3);

  seen_sizes() = {};
}

TEST_CASE("rates: a slow GPU is measured by smaller problems") {
  FakeGpu gpu;
  ModelSpec spec = large_model();
  spec.vocabulary = 400'000'000;  // nobody's, so that the loss does not fit
  const RunShapes shapes{spec, DType::f32, DType::f32, true, true, 1 << 20, 512};
  seen_sizes() = {};
  measure_costs(gpu.device(), gpu_options(uint64_t{16} << 20), shapes, {1e9, 1e9});
  // 2 GFLOP at most: 2 x rows x 64 x 128, and 4 x pairs x 128.
  CHECK(seen_sizes().linear_rows <= 122'070);
  CHECK(seen_sizes().linear_rows > 5'000);
  CHECK(seen_sizes().sequences <= 29);
  CHECK(seen_sizes().sequences > 2);
  seen_sizes() = {};
}

TEST_CASE("rates: a measurement of a GPU stays within its memory") {
  const ModelSpec spec = large_model();
  const RunShapes shapes{spec, DType::f32, DType::f32, true, true, 2048, 512};
  for (const uint64_t most : {uint64_t{3} << 20, uint64_t{5} << 20, uint64_t{12} << 20}) {
    INFO(most);
    FakeGpu gpu({}, most + (2 << 20));  // and tables of streams
    RateOptions options = gpu_options(most);
    options.parameters = 100'000'000;
    CHECK_NOTHROW(measure_costs(gpu.device(), options, shapes, {1e12, 1e9}));
    CHECK(measure_rates(gpu.device(), options).flops_per_s > 0);
  }
}

TEST_CASE("rates: the ceiling of a GPU comes from a product that fills it") {
  seen_sizes() = {};
  FakeGpu slow;
  CHECK(measure_rates(slow.device(), gpu_options(uint64_t{8} << 20)).flops_per_s > 0);
  CHECK(seen_sizes().linear_rows == 256);  // a millisecond is enough
  FakeCudaOptions options;
  options.seconds_per_work = 1e-5;
  FakeGpu fast(options);
  const double rate = measure_rates(fast.device(), gpu_options(uint64_t{8} << 20)).flops_per_s;
  CHECK(seen_sizes().linear_rows == 512);  // 1,024 would not fit
  CHECK(std::abs(rate - 2.0 * 512 * 512 * 512 / 1e-5) < 1e-3 * rate);
  seen_sizes() = {};
}
}  // namespace
}  // namespace hearth::test
