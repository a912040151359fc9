// The CUDA runtime that this build has, on a GPU where this machine has one.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "device/cuda_device.h"
#include "device/cuda_runtime.h"
#include "device/cuda_stream.h"

using namespace hearth;

namespace {

// Null, and the test is skipped with the reason, where there is no GPU.
CudaCalls& calls_or_skip() {
  std::string why_not;
  CudaCalls* calls = cuda_calls(why_not);
  if (calls == nullptr) SKIP("no CUDA device: " + why_not);
  return *calls;
}

}  // namespace

TEST_CASE("there is a CUDA runtime, or a reason why not") {
  std::string why_not;
  CudaCalls* calls = cuda_calls(why_not);
  CHECK((calls == nullptr) == !why_not.empty());
  if (calls == nullptr) return;
  int count = 0;
  REQUIRE(calls->device_count(&count) == kCudaOk);
  CHECK(count >= 1);
}

TEST_CASE("a real GPU says what it is") {
  CudaCalls& calls = calls_or_skip();
  CudaDeviceInfo info;
  REQUIRE(calls.device_info(0, &info) == kCudaOk);
  CHECK_FALSE(info.model.empty());
  CHECK(info.bus_id.find(':') != std::string::npos);
  CHECK(info.major >= 5);
  CHECK(info.processors > 0);
  CHECK(info.memory_bytes > uint64_t{1} << 30);
}

TEST_CASE("a real GPU copies, fills, orders its streams and takes times") {
  CudaCalls& calls = calls_or_skip();
  const std::vector<CudaDeviceOptions> options{{0, 0, nullptr}};
  const CudaDevices made = make_cuda_devices(calls, options);
  Device& device = *made.devices[0];
  const size_t bytes = (size_t{40} << 20) + 13;
  const auto there = device.reserve("there", SpaceKind::device, bytes + 1);
  const auto from = device.reserve("from", SpaceKind::pinned, bytes);
  const auto back = device.reserve("back", SpaceKind::pinned, bytes + 1);
  for (size_t i = 0; i < bytes; ++i) from->data()[i] = static_cast<std::byte>(i % 251);
  StreamOptions use;
  use.use = StreamUse::copy_in;
  const auto in = device.create_stream(use);
  use.use = StreamUse::copy_out;
  const auto out = device.create_stream(use);
  const auto begin = device.create_event(true);
  const auto filled = device.create_event(true);

  device.copy(*out, back->data(), there->data(), bytes + 1);
  out->synchronize();
  CHECK(std::all_of(back->data(), back->data() + bytes,
                    [](std::byte b) { return b == std::byte{0}; }));

  device.record(*begin, *in);
  device.fill(*in, there->data(), std::byte{0xee}, bytes + 1);
  device.copy(*in, there->data(), from->data(), bytes);
  device.record(*filled, *in);
  device.wait(*out, *filled);
  device.copy(*out, back->data(), there->data(), bytes + 1);
  out->synchronize();
  CHECK(std::equal(from->data(), from->data() + bytes, back->data()));
  CHECK(back->data()[bytes] == std::byte{0xee});
  CHECK(device.seconds_between(*begin, *filled) > 0);
  CHECK_NOTHROW(device.check());
}

TEST_CASE("tables reach a real GPU, however often the ring comes round") {
  CudaCalls& calls = calls_or_skip();
  const std::vector<CudaDeviceOptions> options{{0, 0, nullptr}};
  const CudaDevices made = make_cuda_devices(calls, options);
  Device& device = *made.devices[0];
  const auto stream = device.create_stream({});
  constexpr size_t n = 100000;
  constexpr size_t rounds = 50;
  const auto seen = device.reserve("seen", SpaceKind::pinned, n * rounds);
  for (size_t i = 0; i < rounds; ++i) {
    const std::vector<std::byte> table(n, static_cast<std::byte>(i + 1));
    const void* address = cuda_stream(*stream).upload(table);
    CHECK(calls.copy(seen->data() + i * n, address, n, cuda_stream(*stream).handle()) == kCudaOk);
  }
  stream->synchronize();
  for (size_t i = 0; i < rounds; ++i) {
    const std::byte* part = seen->data() + i * n;
    CHECK(std::all_of(part, part + n,
                      [i](std::byte b) { return b == static_cast<std::byte>(i + 1); }));
  }
}

TEST_CASE("a real GPU refuses what it has no memory for and goes on") {
  CudaCalls& calls = calls_or_skip();
  CudaDeviceInfo info;
  REQUIRE(calls.device_info(0, &info) == kCudaOk);
  const std::vector<CudaDeviceOptions> options{{0, info.memory_bytes, nullptr}};
  const CudaDevices made = make_cuda_devices(calls, options);
  Device& device = *made.devices[0];
  CHECK_THROWS_AS(device.reserve("all", SpaceKind::device, info.memory_bytes), Error);
  CHECK_NOTHROW(device.check());
  CHECK_NOTHROW(device.reserve("some", SpaceKind::device, 1 << 20));
}
