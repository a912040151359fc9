// Order of CUDA streams, events, copies and tables, over the fake runtime.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <thread>

#include "device/cuda_fixture.h"
#include "device/host_device.h"

using namespace hearth;
using hearth::test::FakeCudaOptions;
using hearth::test::FakeGpus;

namespace {

std::span<const std::byte> bytes_in(const std::vector<unsigned char>& v) {
  return std::as_bytes(std::span(v));
}

void enqueue(Stream& stream, std::function<void()> work) {
  CudaStream& cuda = cuda_stream(stream);
  CHECK(test::enqueue_on_fake_stream(cuda.handle(), std::move(work)) == kCudaOk);
}

}  // namespace

TEST_CASE("work of a CUDA stream runs in its order and not before it must") {
  FakeGpus gpus;
  const auto stream = gpus.device().create_stream({});
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) enqueue(*stream, [&ran, i] { ran.push_back(i); });
  CHECK(ran.empty());
  CHECK(gpus.cuda.waiting() == 3);
  stream->synchronize();
  CHECK(ran == std::vector<int>{0, 1, 2});
}

TEST_CASE("an event orders streams of a GPU, whatever order they run in") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeCudaOptions options;
    options.seed = seed;
    FakeGpus gpus(options);
    Device& device = gpus.device();
    const auto first = device.create_stream({});
    const auto second = device.create_stream({});
    const auto event = device.create_event();
    for (int round = 0; round < 3; ++round) {
      int value = 0;
      int seen = -1;
      enqueue(*first, [&] { value = 1; });
      device.record(*event, *first);
      enqueue(*first, [&] { value += 10; });
      device.wait(*second, *event);
      enqueue(*second, [&] { seen = value; });
      second->synchronize();
      CHECK((seen == 1 || seen == 11));
      if (seed == 0) CHECK(seen == 1);  // what was not asked for has not run
      first->synchronize();
      event->reset();
    }
  }
}

TEST_CASE("a stream waits for an event that is recorded later by another thread") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const auto first = device.create_stream({});
  const auto second = device.create_stream({});
  const auto event = device.create_event();
  std::atomic<bool> recorded{false}, early{false};
  std::thread waiter([&] {
    device.wait(*second, *event);
    if (!recorded) early = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  recorded = true;
  device.record(*event, *first);
  waiter.join();
  CHECK_FALSE(early);
}

TEST_CASE("threads issue streams at the same time, held together by events alone") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FakeCudaOptions options;
    options.seed = seed;
    FakeGpus gpus(options);
    Device& device = gpus.device();
    constexpr int threads = 3, tasks = 30;  // task i is of thread i % 3 and follows task i - 1
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Event>> events;
    for (int t = 0; t < threads; ++t) streams.push_back(device.create_stream({}));
    for (int i = 0; i < tasks; ++i) events.push_back(device.create_event());
    std::vector<int> ran;
    std::vector<std::thread> issuers;
    for (int t = 0; t < threads; ++t) {
      issuers.emplace_back([&, t] {
        for (int i = t; i < tasks; i += threads) {
          Stream& stream = *streams[static_cast<size_t>(t)];
          if (i > 0) device.wait(stream, *events[static_cast<size_t>(i - 1)]);
          enqueue(stream, [&ran, i] { ran.push_back(i); });
          device.record(*events[static_cast<size_t>(i)], stream);
        }
        streams[static_cast<size_t>(t)]->synchronize();
      });
    }
    for (auto& issuer : issuers) issuer.join();
    REQUIRE(ran.size() == tasks);
    CHECK(std::is_sorted(ran.begin(), ran.end()));
  }
}

TEST_CASE("events reach across kinds of devices") {
  FakeGpus gpus;
  const auto host = make_host_device(1 << 20);
  const auto host_stream = host->create_stream({});
  const auto gpu_stream = gpus.device().create_stream({});

  int value = 0;
  const auto of_gpu = gpus.device().create_event();
  enqueue(*gpu_stream, [&] { value = 1; });
  gpus.device().record(*of_gpu, *gpu_stream);
  CHECK(value == 0);
  host->wait(*host_stream, *of_gpu);
  CHECK(value == 1);

  const auto of_host = host->create_event();
  host->record(*of_host, *host_stream);
  CHECK_NOTHROW(gpus.device().wait(*gpu_stream, *of_host));
}

TEST_CASE("an event of a GPU can be asked without a wait") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const auto stream = device.create_stream({});
  const auto event = device.create_event();
  CHECK_FALSE(event->reached());  // never recorded
  bool ran = false;
  enqueue(*stream, [&] { ran = true; });
  device.record(*event, *stream);
  CHECK_FALSE(event->reached());
  CHECK_FALSE(ran);
  CHECK_NOTHROW(device.check());  // "not yet" is no error
  stream->synchronize();
  CHECK(event->reached());
  event->reset();
  CHECK_FALSE(event->reached());
  device.fail(*event, std::make_exception_ptr(device_error("a fault")));
  CHECK_THROWS_AS(event->reached(), Error);
}

TEST_CASE("timed events tell the time between them") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const auto stream = device.create_stream({});
  const auto begin = device.create_event(true);
  const auto end = device.create_event(true);
  device.record(*begin, *stream);
  for (int i = 0; i < 5; ++i) enqueue(*stream, [] {});
  device.record(*end, *stream);
  const double seconds = device.seconds_between(*begin, *end);  // the fake clock: 1 ms a work
  CHECK(std::abs(seconds - 5e-3) < 1e-6);
  const auto untimed = device.create_event();
  device.record(*untimed, *stream);
  CHECK_THROWS_AS(device.seconds_between(*begin, *untimed), std::logic_error);
}

TEST_CASE("copies of a GPU come in pieces, late, and move every byte and no more") {
  FakeGpus gpus;
  Device& device = gpus.device();
  const size_t bytes = (size_t{40} << 20) + 13;
  const auto there = device.reserve("there", SpaceKind::device, bytes + 1);
  const auto from = device.reserve("from", SpaceKind::pinned, bytes);
  const auto back = device.reserve("back", SpaceKind::pinned, bytes + 1);
  StreamOptions options;
  options.use = StreamUse::copy_in;
  const auto stream = device.create_stream(options);
  device.fill(*stream, there->data(), std::byte{0xee}, bytes + 1);
  device.copy(*stream, there->data(), from->data(), bytes);
  device.copy(*stream, back->data(), there->data(), bytes + 1);
  CHECK(gpus.cuda.waiting() == 7);  // the filling, 3 pieces each way
  CHECK(gpus.cuda.largest_copy() == size_t{16} << 20);
  // Read when it runs, not when it is asked for.
  for (size_t i = 0; i < bytes; ++i) from->data()[i] = static_cast<std::byte>(i % 251);
  stream->synchronize();
  CHECK(std::equal(from->data(), from->data() + bytes, back->data()));
  CHECK(back->data()[bytes] == std::byte{0xee});
  CHECK(gpus.cuda.unpinned_copies() == 0);
  device.copy(*stream, there->data(), from->data(), 0);
  CHECK(gpus.cuda.waiting() == 0);
  CHECK_THROWS_AS(device.copy(*stream, there->data() + 2, from->data(), bytes), std::logic_error);
}

TEST_CASE("GPUs copy to each other, with and without peer access") {
  for (const bool peer_access : {true, false}) {
    FakeCudaOptions options;
    options.devices = 3;
    options.peer_access = peer_access;
    FakeGpus gpus(options);
    CHECK(gpus.cuda.count("enable_peer_access") == (peer_access ? 6 : 0));
    CHECK(gpus.made.notes.size() == (peer_access ? 0u : 3u));
    if (!peer_access)
      CHECK(gpus.made.notes[0].starts_with("cuda:0 and cuda:1 cannot copy to each other directly"));

    Device& first = gpus.device(0);
    Device& last = gpus.device(2);
    const auto a = first.reserve("a", SpaceKind::device, 1000);
    const auto b = last.reserve("b", SpaceKind::device, 1000);
    const auto filler = first.create_stream({});
    first.fill(*filler, a->data(), std::byte{5}, 1000);
    const auto filled = first.create_event();
    first.record(*filled, *filler);
    const auto stream = last.create_stream({});
    last.wait(*stream, *filled);
    last.copy(*stream, b->data(), a->data(), 1000);
    CHECK(gpus.cuda.count("copy_peer") == 1);
    stream->synchronize();
    CHECK(test::bytes_of(last, b->data(), 1000) == std::vector<unsigned char>(1000, 5));
    CHECK_THROWS_AS(last.copy(*filler, b->data(), a->data(), 1000), std::logic_error);
  }
}

TEST_CASE("tables reach the kernels that come after them, however often the ring comes round") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    FakeCudaOptions options;
    options.seed = seed;
    FakeGpus gpus(options);
    const auto stream = gpus.device().create_stream({});
    CudaStream& cuda = cuda_stream(*stream);
    int wrong = 0, ran = 0;
    uint64_t state = seed + 1;
    for (int i = 0; i < 400; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t n = i % 40 == 0 ? CudaStream::kUploadBytes : (state >> 40) % 20000;
      std::vector<unsigned char> table(n);
      for (size_t k = 0; k < n; ++k) table[k] = static_cast<unsigned char>(i + k);
      const void* address = cuda.upload(bytes_in(table));
      CHECK(reinterpret_cast<uintptr_t>(address) % 256 == 0);
      enqueue(*stream, [address, expected = table, &wrong, &ran] {
        if (std::memcmp(address, expected.data(), expected.size()) != 0) ++wrong;
        ++ran;
      });
      std::fill(table.begin(), table.end(), 0xaa);  // read before upload returned
    }
    CHECK(ran < 400);  // the host waited for no more than room in the ring
    stream->synchronize();
    CHECK(ran == 400);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a table stays until as many bytes as a table may have came after it") {
  FakeGpus gpus;
  const auto stream = gpus.device().create_stream({});
  CudaStream& cuda = cuda_stream(*stream);
  const std::vector<unsigned char> large(CudaStream::kUploadBytes, 1);
  const std::vector<unsigned char> small(CudaStream::kUploadBytes / 2, 2);
  for (int i = 0; i < 20; ++i) {
    const std::vector<unsigned char> table(1000 + 3000 * static_cast<size_t>(i),
                                           static_cast<unsigned char>(10 + i));
    const void* address = cuda.upload(bytes_in(table));
    if (i % 2 == 0) {
      cuda.upload(bytes_in(large));
    } else {
      cuda.upload(bytes_in(small));
      cuda.upload(bytes_in(small));
    }
    bool same = false;
    enqueue(*stream, [&] { same = std::memcmp(address, table.data(), table.size()) == 0; });
    stream->synchronize();
    CHECK(same);
  }
  const std::vector<unsigned char> too_large(CudaStream::kUploadBytes + 1);
  CHECK_THROWS_AS(cuda.upload(bytes_in(too_large)), std::logic_error);
  StreamOptions copies;
  copies.use = StreamUse::copy_in;
  const auto of_copies = gpus.device().create_stream(copies);
  CHECK_THROWS_AS(cuda_stream(*of_copies).upload(bytes_in(small)), std::logic_error);
}
