// Measurements of a device: what they compute on is made there, and what a link gives is known or
// measured.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "device/cuda_device.h"
#include "device/host_device.h"
#include "device/virtual_device.h"
#include "runtime/link_rates.h"
#include "runtime/rate_bench.h"
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
  CHECK(measure_rates(*device, small_options()).flops_per_s > 0);
  const CostRates rates = measure_costs(*device, small_options(), shapes);
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

}  // namespace
}  // namespace hearth::test
