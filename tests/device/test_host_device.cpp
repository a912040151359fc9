#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "device/device.h"
#include "device/host_device.h"
#include "device/host_stream.h"

using namespace hearth;

TEST_CASE("the budget bounds what is held at one time") {
  const auto device = make_host_device(1 << 20);
  CHECK(device->name() == "host");
  CHECK(device->spaces().at(0).budget == 1 << 20);
  auto first = device->reserve("weights", SpaceKind::host, 700000);
  CHECK(first->size() == 700000);
  CHECK(first->name() == "weights");
  try {
    device->reserve("activations", SpaceKind::host, 700000);
    FAIL("not raised");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::usage);
    CHECK(std::string(e.what()).find("activations needs 700000 bytes") != std::string::npos);
  }
  StreamOptions options;
  options.scratch_bytes = 400000;
  CHECK_THROWS_AS(device->create_stream(options), Error);
  first.reset();
  CHECK_NOTHROW(device->create_stream(options));
  CHECK_NOTHROW(device->reserve("activations", SpaceKind::host, 1 << 20));
  CHECK_THROWS_AS(device->reserve("huge", SpaceKind::host, ~size_t{0}), Error);
}

TEST_CASE("a stream has the workers and the scratch it was asked for") {
  const auto device = make_host_device(1 << 30);
  StreamOptions options;
  options.workers = 3;
  options.scratch_bytes = 1000;
  options.worker_scratch_bytes = 500;
  const auto stream = device->create_stream(options);
  HostStream& host = host_stream(*stream);
  CHECK(host.pool().workers() == 3);
  CHECK(stream->scratch().size() >= 1000);
  std::vector<std::byte*> starts;
  for (int i = 0; i < 3; ++i) {
    auto* p = reinterpret_cast<std::byte*>(host.worker_scratch(i).take<char>(500));
    CHECK(reinterpret_cast<uintptr_t>(p) % kArenaAlignment == 0);
    for (const std::byte* other : starts) CHECK(std::abs(p - other) >= 500);
    starts.push_back(p);
  }
}

TEST_CASE("an event holds a stream back until it is recorded") {
  const auto device = make_host_device(1 << 30);
  const auto first = device->create_stream({});
  const auto second = device->create_stream({});
  const auto event = device->create_event();
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> recorded{false};
    std::atomic<bool> early{false};
    std::thread waiter([&] {
      device->wait(*second, *event);
      if (!recorded) early = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    recorded = true;
    device->record(*event, *first);
    waiter.join();
    CHECK_FALSE(early);
    event->synchronize();  // reached events stay reached
    event->reset();
  }
}

TEST_CASE("an event can be asked without a wait") {
  const auto device = make_host_device(1 << 20);
  const auto stream = device->create_stream({});
  const auto event = device->create_event();
  CHECK_FALSE(event->reached());
  device->record(*event, *stream);
  CHECK(event->reached());
  event->reset();
  CHECK_FALSE(event->reached());
  device->fail(*event, std::make_exception_ptr(device_error("a fault")));
  CHECK_THROWS_AS(event->reached(), Error);
  int value = 0;
  CHECK(device->pin(&value, sizeof value) != nullptr);  // nothing to do
}

TEST_CASE("all who wait on a failed event get the error") {
  const auto device = make_host_device(1 << 30);
  const auto event = device->create_event();
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
  device->fail(*event, std::make_exception_ptr(device_error("the stream broke")));
  device->fail(*event, std::make_exception_ptr(device_error("a later error")));
  for (auto& w : waiters) w.join();
  CHECK(raised == 3);
  event->reset();
  const auto stream = device->create_stream({});
  device->record(*event, *stream);
  CHECK_NOTHROW(event->synchronize());
}

TEST_CASE("a copy moves every byte and no more") {
  const auto device = make_host_device(1 << 30);
  StreamOptions options;
  options.workers = 3;
  const auto stream = device->create_stream(options);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 20) + 13}) {
    std::vector<unsigned char> from(bytes), to(bytes + 1, 0xee);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i % 251);
    device->copy(*stream, to.data(), from.data(), bytes);
    CHECK(std::equal(from.begin(), from.end(), to.begin()));
    CHECK(to[bytes] == 0xee);
  }
}
