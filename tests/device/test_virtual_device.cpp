// Virtual devices: memory with a budget, cores, and links against a clock that only copies move.
#include <sys/prctl.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "device/host_stream.h"
#include "device/virtual_device.h"
#include "support/raises.h"

using namespace hearth;

namespace {

struct FakeClock final : LinkClock {
  double now() override { return seconds; }
  void sleep_until(double until) override { seconds = std::max(seconds, until); }
  double seconds = 100;
};

bool is_near(double a, double b) { return std::abs(a - b) < 1e-9; }

}  // namespace

TEST_CASE("a virtual device has a budget, which its streams share") {
  VirtualOptions options;
  options.name = "virtual:3";
  options.memory = 1 << 20;
  const auto device = make_virtual_device(options);
  CHECK(device->name() == "virtual:3");
  CHECK(device->host_reaches());
  CHECK(device->spaces().at(0).kind == SpaceKind::device);
  CHECK(device->spaces().at(0).budget == 1 << 20);
  auto arena = device->reserve("weights", SpaceKind::device, 700000);
  CHECK(arena->size() == 700000);
  CHECK(arena->resident_bytes() == 700000);
  CHECK(std::all_of(arena->data(), arena->data() + 700000,
                    [](std::byte b) { return b == std::byte{0}; }));
  StreamOptions stream;
  stream.scratch_bytes = 400000;
  const auto refused = test::raised_by([&] { device->create_stream(stream); });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("memory of virtual:3: scratch of stream compute needs 400000 bytes"));
  CHECK(refused.says("raise mem="));
  CHECK_NOTHROW(device->reserve("staging", SpaceKind::pinned, 4 << 20));  // the host's
  arena.reset();
  CHECK_NOTHROW(device->create_stream(stream));
}

TEST_CASE("compute streams of a virtual device run on its cores") {
  VirtualOptions options;
  options.cores = {0};
  const auto device = make_virtual_device(options);
  StreamOptions stream;
  stream.workers = 5;
  CHECK(host_stream(*device->create_stream(stream)).pool().workers() == 1);
  stream.use = StreamUse::copy_in;
  CHECK(host_stream(*device->create_stream(stream)).pool().workers() == 5);
  // So many workers that they have to share cores.
  options.cores.clear();
  options.workers = 3;
  const auto sharing = make_virtual_device(options);
  CHECK(host_stream(*sharing->create_stream(stream)).pool().workers() == 5);
  stream.use = StreamUse::compute;
  CHECK(host_stream(*sharing->create_stream(stream)).pool().workers() == 3);
}

TEST_CASE("copies take the time of their direction, and no byte is lost") {
  FakeClock clock;
  VirtualOptions options;
  options.h2d = 1e6;
  options.d2h = 5e5;
  options.latency = 0.25;
  const auto device = make_virtual_device(options, clock);
  const auto stream = device->create_stream({});
  const size_t bytes = 3'000'000;
  const auto there = device->reserve("there", SpaceKind::device, bytes);
  const auto twin = device->reserve("twin", SpaceKind::device, bytes);
  std::vector<unsigned char> from(bytes), back(bytes + 1, 0xee);
  for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i % 251);

  device->copy(*stream, there->data(), from.data(), bytes);
  CHECK(is_near(clock.seconds, 103.25));
  device->copy(*stream, twin->data(), there->data(), bytes);  // within the device
  CHECK(is_near(clock.seconds, 103.25));
  device->copy(*stream, back.data(), twin->data(), bytes);
  CHECK(is_near(clock.seconds, 109.5));
  CHECK(std::equal(from.begin(), from.end(), back.begin()));
  CHECK(back[bytes] == 0xee);
  device->copy(*stream, back.data(), from.data(), bytes);  // within the host
  CHECK(is_near(clock.seconds, 109.5));
  device->fill(*stream, there->data(), std::byte{9}, bytes);
  CHECK(is_near(clock.seconds, 109.5));
  CHECK(there->data()[bytes - 1] == std::byte{9});
  CHECK_THROWS_AS(device->copy(*stream, there->data() + 1, from.data(), bytes), std::logic_error);
}

TEST_CASE("copies in the other direction may have another latency") {
  FakeClock clock;
  VirtualOptions options;
  options.h2d = options.d2h = 1e6;
  options.latency = 0.25;
  options.d2h_latency = 0;
  const auto device = make_virtual_device(options, clock);
  const auto stream = device->create_stream({});
  const auto there = device->reserve("there", SpaceKind::device, 1'000'000);
  std::vector<unsigned char> host(1'000'000);
  device->copy(*stream, there->data(), host.data(), host.size());
  CHECK(is_near(clock.seconds, 101.25));
  device->copy(*stream, host.data(), there->data(), host.size());
  CHECK(is_near(clock.seconds, 102.25));
  CHECK(device->link_rates()->in.latency_s == 0.25);
  CHECK(device->link_rates()->out.latency_s == 0);
}

TEST_CASE("without limits a copy takes no time of the clock") {
  FakeClock clock;
  const auto device = make_virtual_device({}, clock);
  const auto stream = device->create_stream({});
  const auto there = device->reserve("there", SpaceKind::device, 5000);
  const std::vector<unsigned char> from(5000, 1);
  device->copy(*stream, there->data(), from.data(), 5000);
  CHECK(clock.seconds == 100);
  CHECK(there->data()[4999] == std::byte{1});
}

TEST_CASE("a link carries one booking after the other, and rests between") {
  Link link(100);
  CHECK(is_near(link.book(10, 50), 10.5));
  CHECK(is_near(link.book(10, 100), 11.5));  // the first holds it until 10.5
  CHECK(is_near(link.book(20, 100), 21));
  Link unlimited(0);
  CHECK(unlimited.book(5, 1 << 30) == 5);
}

TEST_CASE("devices on one root complex share its bandwidth in each direction") {
  FakeClock clock;
  VirtualOptions options;
  options.h2d = options.d2h = 1e6;
  options.root = std::make_shared<RootComplex>(5e5);
  const auto first = make_virtual_device(options, clock);
  const auto second = make_virtual_device(options, clock);
  const auto stream = first->create_stream({});
  const auto other_stream = second->create_stream({});
  const auto there = first->reserve("there", SpaceKind::device, 1'000'000);
  const auto other = second->reserve("other", SpaceKind::device, 1'000'000);
  std::vector<unsigned char> host(1'000'000, 1);
  first->copy(*stream, there->data(), host.data(), host.size());
  CHECK(is_near(clock.seconds, 102));  // slower than its own link
  clock.seconds = 100;                 // the second began at the same time as the first
  second->copy(*other_stream, other->data(), host.data(), host.size());
  CHECK(is_near(clock.seconds, 104));
  clock.seconds = 100;
  second->copy(*other_stream, host.data(), other->data(), host.size());
  CHECK(is_near(clock.seconds, 102));  // the other direction was free
}

TEST_CASE("a small copy beside a long one gets its share, and latency leaves the link to others") {
  // What happens at the same time happens while a copy sleeps.
  struct BusyClock final : LinkClock {
    double now() override { return seconds; }
    void sleep_until(double until) override {
      if (const auto other = std::exchange(meanwhile, nullptr)) other();
      seconds = std::max(seconds, until);
    }
    double seconds = 100;
    std::function<void()> meanwhile;
  } clock;
  VirtualOptions options;
  options.h2d = 1e6;
  options.fabric = std::make_shared<Fabric>();
  const auto device = make_virtual_device(options, clock);
  const auto stream = device->create_stream({}), other_stream = device->create_stream({});
  const size_t bytes = 4'000'000, few = 4096;
  const auto there = device->reserve("there", SpaceKind::device, bytes);
  const auto small = device->reserve("small", SpaceKind::device, few);
  const std::vector<unsigned char> host(bytes, 1);
  double ended = 0;
  clock.meanwhile = [&] {
    device->copy(*other_stream, small->data(), host.data(), few);
    ended = clock.seconds;
  };
  device->copy(*stream, there->data(), host.data(), bytes);
  // Alone it takes 4.1 ms; beside another copy it has half of the link.
  CHECK(is_near(ended, 100 + 2 * few / 1e6));
  CHECK(is_near(clock.seconds, 100 + (bytes + few) / 1e6));

  options.root = std::make_shared<RootComplex>(1e6);
  const auto quick = make_virtual_device(options, clock);
  options.latency = .5;
  const auto late = make_virtual_device(options, clock);
  const auto here = quick->reserve("here", SpaceKind::device, few);
  const auto later = late->reserve("later", SpaceKind::device, few);
  clock.seconds = 200;
  clock.meanwhile = [&] {
    quick->copy(*stream, here->data(), host.data(), few);
    ended = clock.seconds;
  };
  late->copy(*other_stream, later->data(), host.data(), few);
  CHECK(is_near(ended, 200 + few / 1e6));
  CHECK(is_near(clock.seconds, 200.5 + few / 1e6));
}

TEST_CASE("a copy between two devices goes through the host, over both links at once") {
  FakeClock clock;
  VirtualOptions options;
  options.fabric = std::make_shared<Fabric>();
  options.h2d = 8e6;
  options.d2h = 1e6;
  options.latency = 0.25;
  options.d2h_latency = 0.5;
  const auto first = make_virtual_device(options, clock);
  options.h2d = 2e6;
  options.d2h = 4e6;
  options.latency = options.d2h_latency = 0.125;
  const auto second = make_virtual_device(options, clock);
  const auto stream = second->create_stream({});
  const size_t bytes = 4'000'000;  // in several pieces
  const auto here = first->reserve("here", SpaceKind::device, bytes);
  const auto there = second->reserve("there", SpaceKind::device, bytes);
  for (size_t i = 0; i < bytes; ++i) here->data()[i] = static_cast<std::byte>(i % 251);

  second->copy(*stream, there->data(), here->data(), bytes);
  CHECK(is_near(clock.seconds, 100 + 0.5 + 0.125 + 4));  // the link out of the first is slower
  CHECK(std::equal(here->data(), here->data() + bytes, there->data()));
  // Either device may carry the copy out; the way back has links of its own.
  clock.seconds = 100;
  first->copy(*stream, here->data(), there->data(), bytes);
  CHECK(is_near(clock.seconds, 100 + 0.125 + 0.25 + 1));

  // A copy to the host at the same time has to share the link out of the first, and a copy from the
  // host the link into the second. Links in other directions are free.
  std::vector<unsigned char> host(bytes);
  for (const bool out : {true, false}) {
    clock.seconds = out ? 200 : 300;
    const double begin = clock.seconds;
    second->copy(*stream, there->data(), here->data(), bytes);
    clock.seconds = begin;
    if (out) {
      first->copy(*stream, host.data(), here->data(), bytes);
      CHECK(is_near(clock.seconds, begin + 0.5 + 0.125 + 4 + 4));
    } else {
      second->copy(*stream, there->data(), host.data(), bytes);
      // Bytes; the last piece passes this link faster.
      const double before_last = 4096.0 * std::floor(4e6 / 4096);
      CHECK(is_near(clock.seconds,
                    begin + 0.5 + 0.125 + before_last / 1e6 + (4e6 - before_last) / 2e6 + 2));
    }
    clock.seconds = begin;
    first->copy(*stream, here->data(), host.data(), bytes);
    CHECK(is_near(clock.seconds, begin + 0.25 + 0.5));
  }
}

TEST_CASE("a copy between two devices passes their root complexes, the own one twice") {
  FakeClock clock;
  const auto fabric = std::make_shared<Fabric>();
  const auto left = std::make_shared<RootComplex>(2e6), right = std::make_shared<RootComplex>(1e6);
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& root : {left, left, right}) {
    VirtualOptions options;
    options.root = root;
    options.fabric = fabric;
    devices.push_back(make_virtual_device(options, clock));
  }
  const auto stream = devices[0]->create_stream({});
  std::vector<std::unique_ptr<Arena>> arenas;
  for (const auto& device : devices) {
    arenas.push_back(device->reserve("memory", SpaceKind::device, 2'000'000));
  }
  const auto took = [&](size_t from, size_t to) {
    const double begin = clock.seconds;
    devices[to]->copy(*stream, arenas[to]->data(), arenas[from]->data(), 2'000'000);
    return clock.seconds - begin;
  };
  CHECK(is_near(took(0, 1), 1));
  CHECK(is_near(took(0, 2), 2));
  CHECK(is_near(took(2, 1), 2));
  // Both directions of the left root complex were in use until 101.
  std::vector<unsigned char> host(2'000'000);
  for (const bool in : {true, false}) {
    clock.seconds = in ? 200 : 300;
    const double begin = clock.seconds;
    took(0, 1);
    clock.seconds = begin;
    devices[0]->copy(*stream, in ? arenas[0]->data() : reinterpret_cast<std::byte*>(host.data()),
                     in ? reinterpret_cast<std::byte*>(host.data()) : arenas[0]->data(),
                     host.size());
    CHECK(is_near(clock.seconds, begin + 2));
  }
}

TEST_CASE("a thread that waits for the real clock has precise timers") {
  int slack = 0;
  std::thread([&] {
    LinkClock& clock = steady_link_clock();
    const double until = clock.now() + 1e-4;
    clock.sleep_until(until);
    slack = clock.now() >= until ? prctl(PR_GET_TIMERSLACK) : -1;
    clock.sleep_until(-1e300);  // long over
  }).join();
  CHECK(slack == 1);  // nanosecond
}

TEST_CASE("the real clock holds copies back") {
  VirtualOptions options;
  options.h2d = 1e7;
  const auto device = make_virtual_device(options);
  const auto stream = device->create_stream({});
  const auto there = device->reserve("there", SpaceKind::device, 500'000);
  const std::vector<unsigned char> from(500'000, 1);
  const auto begin = device->create_event(true);
  const auto end = device->create_event(true);
  device->record(*begin, *stream);
  device->copy(*stream, there->data(), from.data(), from.size());
  device->record(*end, *stream);
  CHECK(device->seconds_between(*begin, *end) >= 0.05);
}
