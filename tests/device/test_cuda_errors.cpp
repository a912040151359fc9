// Failing calls and failing work of CUDA devices, over the fake runtime.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "device/cuda_fixture.h"
#include "device/host_device.h"

using namespace hearth;
using hearth::test::FakeGpus;
using hearth::test::raises;

namespace {

constexpr CudaCode kIllegalAddress = 700;

struct Work {
  explicit Work(FakeGpus& gpus)
      : device(gpus.device()),
        arena(device.reserve("weights", SpaceKind::device, 1000)),
        pinned(device.reserve("staging", SpaceKind::pinned, 1000)),
        stream(device.create_stream({})),
        event(device.create_event()) {}
  Device& device;
  std::unique_ptr<Arena> arena, pinned;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> event;

  void run() const {
    const std::vector<std::byte> table(100);
    device.copy(*stream, arena->data(), pinned->data(), 1000);
    device.fill(*stream, arena->data(), std::byte{1}, 1000);
    cuda_stream(*stream).upload(table);
    void* handle = cuda_stream(*stream).handle();
    const CudaCode code = test::enqueue_on_fake_stream(handle, [] {});
    if (code != kCudaOk) refuse_launch(handle, "rmsnorm", code);
    device.record(*event, *stream);
    device.wait(*stream, *event);
    event->synchronize();
    stream->synchronize();
    device.check();
  }
};

}  // namespace

TEST_CASE("any failing call of a GPU is a device error that stays") {
  const std::vector<std::pair<std::string, std::string>> calls{
      {"copy", "cudaMemcpyAsync"},
      {"fill", "cudaMemsetAsync"},
      {"launch", "launch by rmsnorm"},
      {"event_record", "cudaEventRecord"},
      {"stream_wait_event", "cudaStreamWaitEvent"},
      {"event_synchronize", "cudaEventSynchronize"},
      {"stream_synchronize", "cudaStreamSynchronize"},
      {"set_device", "cudaSetDevice"},
  };
  for (const auto& [function, label] : calls) {
    FakeGpus gpus;
    const Work work(gpus);
    CHECK_NOTHROW(work.run());
    work.event->reset();
    gpus.cuda.fail_call(function, kIllegalAddress);
    const std::string line = "cuda:0: " + label + ": fake error 700 (700)";
    INFO(line);
    CHECK(raises(ExitCode::device, line, [&] { work.run(); }));
    CHECK(raises(ExitCode::device, line, [&] { work.stream->synchronize(); }));
    CHECK(raises(ExitCode::device, line, [&] { work.device.check(); }));
    CHECK(raises(ExitCode::device, line,
                 [&] { work.device.reserve("more", SpaceKind::device, 10); }));
    CHECK(raises(ExitCode::device, line, [&] { work.device.create_event(); }));
    CHECK(raises(ExitCode::device, line, [&] { cuda_stream(*work.stream).handle(); }));
  }
}

TEST_CASE("a launch that is refused breaks the device of its stream alone") {
  test::FakeCudaOptions options;
  options.devices = 2;
  FakeGpus gpus(options);
  const auto first = gpus.device(0).create_stream({}), second = gpus.device(1).create_stream({});
  void* handle = cuda_stream(*second).handle();
  CHECK(raises(ExitCode::device, "cuda:1: launch by rope: fake error 701 (701)",
               [&] { refuse_launch(handle, "rope", 701); }));
  CHECK(raises(ExitCode::device, "(701)", [&] { gpus.device(1).check(); }));
  CHECK_NOTHROW(gpus.device(0).check());
  CHECK_NOTHROW(first->synchronize());
  CHECK_THROWS_AS(refuse_launch(nullptr, "rope", 701), std::logic_error);
}

TEST_CASE("work that fails later ends every call after it, and nothing is leaked") {
  FakeGpus gpus;
  const int64_t handles = gpus.cuda.live_handles();
  {
    const Work work(gpus);
    gpus.cuda.fail_work(kIllegalAddress, 2);
    CHECK(raises(ExitCode::device, "fake error 700 (700)", [&] { work.run(); }));
    CHECK(raises(ExitCode::device, "(700)", [&] { work.device.check(); }));
    CHECK(raises(ExitCode::device, "(700)", [&] { work.event->synchronize(); }));
  }
  CHECK(gpus.cuda.live_handles() == handles);
  CHECK(gpus.cuda.device_bytes(0) == 0);
  CHECK(gpus.cuda.pinned_bytes() == 0);
}

TEST_CASE("check tells of work that has failed without a wait for it") {
  FakeGpus gpus;
  const Work work(gpus);
  gpus.cuda.fail_work(kIllegalAddress);
  work.device.fill(*work.stream, work.arena->data(), std::byte{1}, 10);
  CHECK_NOTHROW(work.device.check());  // it has not run yet
  test::bytes_of(gpus.device(), work.arena->data(), 0);
  void* handle = cuda_stream(*work.stream).handle();
  CHECK(gpus.cuda.stream_synchronize(handle) == kIllegalAddress);  // as if time had passed
  CHECK(raises(ExitCode::device, "fake error 700 (700)", [&] { work.device.check(); }));
}

TEST_CASE("an event that is not yet reached is no error of another thread") {
  FakeGpus gpus;
  const Work work(gpus);
  void* const handle = cuda_stream(*work.stream).handle();
  REQUIRE(test::enqueue_on_fake_stream(handle, [] {}) == kCudaOk);
  void* event = nullptr;
  REQUIRE(gpus.cuda.event_create(&event, false) == kCudaOk);
  REQUIRE(gpus.cuda.event_record(event, handle) == kCudaOk);
  // This thread has asked, and not yet cleared what it was told.
  CHECK(gpus.cuda.event_query(event) == kCudaNotReady);
  std::thread([&] { CHECK_NOTHROW(work.device.check()); }).join();
  CHECK(gpus.cuda.get_last_error() == kCudaNotReady);
  CHECK(gpus.cuda.get_last_error() == kCudaOk);
  work.stream->synchronize();
  CHECK(gpus.cuda.event_destroy(event) == kCudaOk);
}

TEST_CASE("all who wait on a failed event of a GPU get the error") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const auto event = device.create_event();
  const auto stream = device.create_stream({});
  std::atomic<int> raised{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] {
      try {
        event->synchronize();
      } catch (const Error& e) {
        if (std::string(e.what()) == "the stream broke") ++raised;
      }
    });
  }
  device.fail(*event, std::make_exception_ptr(device_error("the stream broke")));
  device.fail(*event, std::make_exception_ptr(device_error("a later error")));
  for (auto& w : waiters) w.join();
  CHECK(raised == 3);
  CHECK(raises(ExitCode::device, "the stream broke", [&] { device.wait(*stream, *event); }));
  event->reset();
  device.record(*event, *stream);
  CHECK_NOTHROW(event->synchronize());
}

TEST_CASE("objects of one device are refused by another") {
  test::FakeCudaOptions options;
  options.devices = 2;
  FakeGpus gpus(options);
  const auto host = make_host_device(1 << 20);
  const auto host_stream = host->create_stream({});
  const auto event = gpus.device(0).create_event();
  const auto other = gpus.device(1).create_stream({});
  CHECK_THROWS_AS(gpus.device(1).record(*event, *other), std::logic_error);
  CHECK_THROWS_AS(gpus.device(0).record(*event, *other), std::logic_error);
  CHECK_THROWS_AS(gpus.device(0).record(*event, *host_stream), std::logic_error);
  CHECK_THROWS_AS(gpus.device(0).reserve("x", SpaceKind::host, 10), std::logic_error);
}
