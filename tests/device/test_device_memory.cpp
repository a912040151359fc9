// Bytes between the places of a run and the host: over a runtime whose device memory faults when the
// host touches it, and whose work runs late.
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "cuda_fixture.h"
#include "device/device_memory.h"
#include "device/virtual_device.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<std::byte> pattern(size_t bytes, size_t seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 7 + seed + i / 251) % 256);
  return data;
}

constexpr size_t kPiece = DeviceMemory::kPieceBytes;

}  // namespace

TEST_CASE("device memory: what is written is read back, in pieces and from pinned memory") {
  for (const uint64_t seed : {0, 1, 2}) {
    FakeCudaOptions options;
    options.devices = 2;
    options.seed = seed;
    FakeGpus gpus(options);
    Device* const devices[] = {&gpus.device(0), &gpus.device(1)};
    DeviceMemory memory(devices);
    CHECK(memory.host_reaches(kHostPlace));
    CHECK(!memory.host_reaches(1));
    CHECK(!memory.host_reaches(2));
    const size_t room = 5 * kPiece + 4096;
    const auto first = gpus.device(0).reserve("first", SpaceKind::device, room);
    const auto second = gpus.device(1).reserve("second", SpaceKind::device, room);
    for (const size_t bytes : {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece,
                               3 * kPiece + 5, 5 * kPiece}) {
      INFO("seed " << seed << ", " << bytes << " bytes");
      const auto a = pattern(bytes, 1), b = pattern(bytes, 99);
      memory.write(1, first->data() + 13, a);
      memory.write(2, second->data() + 13, b);
      std::vector<std::byte> back(bytes);
      memory.read(1, first->data() + 13, back);
      const bool same = back == a;
      CHECK(same);
      memory.read(2, second->data() + 13, back);
      const bool same_second = back == b;
      CHECK(same_second);
    }
    CHECK(gpus.cuda.unpinned_copies() == 0);
    CHECK(gpus.cuda.largest_copy() <= kPiece);
    CHECK(gpus.cuda.waiting() == 0);
  }
}

TEST_CASE("device memory: threads take turns") {
  FakeGpus gpus;
  Device* const devices[] = {&gpus.device()};
  DeviceMemory memory(devices);
  const size_t bytes = 2 * kPiece + 77;
  const auto arena = gpus.device().reserve("arena", SpaceKind::device, 4 * bytes);
  bool same[4] = {};
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto data = pattern(bytes, i * 31);
        std::vector<std::byte> back(bytes);
        for (int round = 0; round < 3; ++round) {
          memory.write(1, arena->data() + i * bytes, data);
          memory.read(1, arena->data() + i * bytes, back);
        }
        same[i] = back == data;
      });
    }
  }
  for (const bool of_thread : same) CHECK(of_thread);
}

TEST_CASE("device memory: a failing copy is the device's error") {
  FakeGpus gpus;
  Device* const devices[] = {&gpus.device()};
  DeviceMemory memory(devices);
  const auto arena = gpus.device().reserve("arena", SpaceKind::device, 4 * kPiece);
  std::vector<std::byte> data = pattern(3 * kPiece, 5);
  memory.write(1, arena->data(), data);
  gpus.cuda.fail_work(700, 2);
  CHECK(raises(ExitCode::device, "cuda:0", [&] { memory.read(1, arena->data(), data); }));
  CHECK(raises(ExitCode::device, "cuda:0", [&] { memory.write(1, arena->data(), data); }));
}

TEST_CASE("device memory: a device that the host reaches needs no link") {
  const auto device = make_virtual_device({});
  Device* const devices[] = {device.get()};
  DeviceMemory memory(devices);
  CHECK(memory.host_reaches(1));
  const auto arena = device->reserve("arena", SpaceKind::device, 1000);
  const auto data = pattern(1000, 3);
  memory.write(1, arena->data(), data);
  CHECK(std::equal(data.begin(), data.end(), arena->data()));
  std::vector<std::byte> back(1000);
  memory.read(1, arena->data(), back);
  CHECK(back == data);
}
