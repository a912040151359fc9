// Memory of CUDA devices, over the fake runtime.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/pool.h"
#include "device/cuda_fixture.h"
#include "device/host_device.h"

using namespace hearth;
using hearth::test::FakeCuda;
using hearth::test::FakeCudaOptions;
using hearth::test::FakeGpus;
using hearth::test::raises;

TEST_CASE("the budget of a GPU leaves 5 % and at least 512 MiB") {
  CHECK(default_gpu_budget(uint64_t{80} << 30) == uint64_t{76} << 30);
  CHECK(default_gpu_budget(uint64_t{8} << 30) == (uint64_t{8} << 30) - (uint64_t{512} << 20));
  CHECK(default_gpu_budget(uint64_t{256} << 20) == 0);
}

TEST_CASE("a GPU's memory is zeroed, out of the host's reach, and given back") {
  FakeGpus gpus;
  Device& device = gpus.device();
  CHECK(device.name() == "cuda:0");
  CHECK_FALSE(device.host_reaches());
  CHECK(device.spaces().at(0).kind == SpaceKind::device);
  CHECK(device.spaces().at(0).budget == default_gpu_budget(size_t{1} << 30));
  {
    const auto arena = device.reserve("weights", SpaceKind::device, 10000);
    CHECK(arena->size() == 10000);
    CHECK(arena->resident_bytes() == 10000);
    arena->touch(Pool(1));  // must not
    CHECK_FALSE(test::host_can_read(arena->data()));
    const auto bytes = test::bytes_of(device, arena->data(), arena->size());
    CHECK(std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == 0; }));
    CHECK_FALSE(test::host_can_read(arena->data()));
    CHECK(gpus.cuda.device_bytes(0) == 10000);
  }
  CHECK(gpus.cuda.device_bytes(0) == 0);
  CHECK(device.reserve("nothing", SpaceKind::device, 0)->size() == 0);
}

TEST_CASE("a GPU is started once, and known by model and driver") {
  FakeCudaOptions options;
  options.devices = 2;
  FakeGpus gpus(options);
  CHECK(gpus.cuda.count("start_device") == 2);
  CHECK(gpus.device().has_own_clock());
  CHECK(gpus.device(0).identity() == "fake GPU, compute capability 9.0, fake driver 1");
  CHECK(gpus.device(1).identity() == gpus.device(0).identity());
  options.driver = "fake driver 2";
  CHECK(FakeGpus(options).device().identity() != gpus.device().identity());

  FakeCuda cuda;
  cuda.fail_call("start_device", 801);
  const CudaDeviceOptions gpu;
  CHECK(raises(ExitCode::device, "cuda:0: cudaInitDevice: fake error 801 (801)", [&] {
    make_cuda_devices(cuda, {&gpu, 1});
  }));
}

TEST_CASE("what exceeds the budget of a GPU is refused by name") {
  FakeGpus gpus({}, 1 << 20);
  Device& device = gpus.device();
  auto first = device.reserve("weights", SpaceKind::device, 700000);
  try {
    device.reserve("activations", SpaceKind::device, 700000);
    FAIL("not raised");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::usage);
    const std::string text = e.what();
    CHECK(text.find("memory of cuda:0: activations needs 700000 bytes") != std::string::npos);
    CHECK(text.find("raise the memory of a GPU") != std::string::npos);
  }
  StreamOptions options;
  options.scratch_bytes = 400000;
  CHECK_THROWS_AS(device.create_stream(options), Error);
  first.reset();
  CHECK_NOTHROW(device.reserve("activations", SpaceKind::device, 700000));
}

TEST_CASE("free memory of a GPU is what nobody has, other programs included") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const uint64_t all = *device.free_bytes();
  CHECK(all > 0);
  {
    const auto arena = device.reserve("slots", SpaceKind::device, 1 << 20);
    CHECK(*device.free_bytes() == all - (1 << 20));
    gpus.cuda.take_memory(5 << 20);
    CHECK(*device.free_bytes() == all - (6 << 20));
  }
  CHECK(*device.free_bytes() == all - (5 << 20));
  CHECK_FALSE(make_host_device(uint64_t{1} << 30)->free_bytes());
}

TEST_CASE("a stream takes what it said, and gives it back") {
  FakeGpus gpus;
  StreamOptions options;
  options.scratch_bytes = 100000;
  const int64_t handles = gpus.cuda.live_handles();
  for (const StreamUse use : {StreamUse::compute, StreamUse::copy_in}) {
    options.use = use;
    auto stream = gpus.device().create_stream(options);
    CHECK(gpus.cuda.device_bytes(0) == CudaStream::memory_bytes(options));
    CHECK(stream->resident_bytes() == CudaStream::memory_bytes(options));
    CHECK(stream->scratch().size() >= 100000);
    CHECK_FALSE(test::host_can_read(stream->scratch().take<char>(1)));
    stream.reset();
    CHECK(gpus.cuda.device_bytes(0) == 0);
    CHECK(gpus.cuda.pinned_bytes() == 0);
    CHECK(gpus.cuda.live_handles() == handles);
  }
}

TEST_CASE("a GPU without memory is an error of the request, not of the device") {
  FakeCudaOptions options;
  options.memory_bytes = size_t{1} << 30;
  FakeGpus gpus(options, size_t{1} << 30);
  gpus.cuda.fail_call("malloc_device", kCudaOutOfMemory);
  try {
    gpus.device().reserve("weights", SpaceKind::device, 1000);
    FAIL("not raised");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::device);
    const std::string text = e.what();
    CHECK(text.find("cuda:0: weights needs 1000 bytes: out of memory") != std::string::npos);
    CHECK(text.find("of 1073741824 bytes of the GPU are free") != std::string::npos);
  }
  CHECK_NOTHROW(gpus.device().check());
  CHECK_NOTHROW(gpus.device().reserve("weights", SpaceKind::device, 1000));
}

TEST_CASE("pinned memory is the host's, within its budget") {
  const auto budget = std::make_shared<Budget>("host", "raise --cpu-memory", 1 << 20);
  FakeGpus gpus({}, 0, budget);
  Device& device = gpus.device();
  CHECK(device.spaces().at(1).kind == SpaceKind::pinned);
  CHECK(device.spaces().at(1).budget == 1 << 20);
  {
    const auto arena = device.reserve("staging", SpaceKind::pinned, 100000);
    CHECK(budget->used() == 100000);
    CHECK(gpus.cuda.pinned_bytes() == 100000);
    CHECK(std::all_of(arena->data(), arena->data() + 100000,
                      [](std::byte b) { return b == std::byte{0}; }));
  }
  CHECK(budget->used() == 0);
  CHECK(gpus.cuda.pinned_bytes() == 0);
  CHECK(raises(ExitCode::usage, "--cpu-memory",
               [&] { device.reserve("huge", SpaceKind::pinned, 2 << 20); }));
  gpus.cuda.fail_call("host_register", kCudaOutOfMemory);
  CHECK(raises(ExitCode::device, "cannot pin 1000 bytes",
               [&] { device.reserve("staging", SpaceKind::pinned, 1000); }));
  CHECK(budget->used() == 0);
  CHECK_NOTHROW(device.check());
}

TEST_CASE("memory of the caller is pinned until its pin goes, or refused") {
  FakeGpus gpus;
  const Arena memory("homes", 1 << 16);
  std::shared_ptr<void> pin = gpus.device().pin(memory.data(), 4096);
  REQUIRE(pin != nullptr);
  CHECK(gpus.cuda.pinned_bytes() == 4096);
  pin.reset();
  CHECK(gpus.cuda.pinned_bytes() == 0);
  gpus.cuda.fail_call("host_register", kCudaOutOfMemory);
  CHECK(gpus.device().pin(memory.data(), 4096) == nullptr);
  CHECK_NOTHROW(gpus.device().check());  // the device is as it was
  pin = gpus.device().pin(memory.data(), 8192);
  REQUIRE(pin != nullptr);
  // A copy that is under way ends first.
  const auto target = gpus.device().reserve("slots", SpaceKind::device, 4096);
  const auto stream = gpus.device().create_stream({});
  gpus.device().copy(*stream, target->data(), memory.data(), 4096);
  CHECK(gpus.cuda.waiting() == 1);
  pin.reset();
  CHECK(gpus.cuda.waiting() == 0);
  CHECK(gpus.cuda.unpinned_copies() == 0);
  gpus.cuda.fail_call("host_register", 719);
  CHECK(raises(ExitCode::device, "cudaHostRegister",
               [&] { gpus.device().pin(memory.data(), 4096); }));
}

TEST_CASE("copies still under way end before their pinned memory goes") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const auto arena = device.reserve("weights", SpaceKind::device, 1000);
  const auto stream = device.create_stream({});
  auto pinned = device.reserve("staging", SpaceKind::pinned, 1000);
  std::fill_n(pinned->data(), 1000, std::byte{7});
  device.copy(*stream, arena->data(), pinned->data(), 1000);
  pinned.reset();
  CHECK(test::bytes_of(device, arena->data(), 1000) == std::vector<unsigned char>(1000, 7));
}

TEST_CASE("numbers of GPUs are checked") {
  FakeCuda cuda;
  const auto make = [&](std::vector<CudaDeviceOptions> options) {
    make_cuda_devices(cuda, options);
  };
  CHECK(raises(ExitCode::usage, "there is no cuda:1; this machine has 1 GPU", [&] {
    make({{1, 0, nullptr}});
  }));
  CHECK(raises(ExitCode::usage, "cuda:0 twice", [&] { make({{0, 0, nullptr}, {0, 0, nullptr}}); }));
  CHECK(raises(ExitCode::usage, "the memory of a GPU: 1073741825 bytes, but cuda:0 has 1073741824",
               [&] {
                 make({{0, (uint64_t{1} << 30) + 1, nullptr}});
               }));
  cuda.fail_call("device_count", 35);
  CHECK(raises(ExitCode::device, "cudaGetDeviceCount: fake error 35 (35)", [&] {
    make({{0, 0, nullptr}});
  }));
}
