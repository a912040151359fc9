#include <omp.h>
#include <sched.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/pool.h"

using namespace hearth;

namespace {

const std::vector<int> kTeams{1, 2, 3, 5, 8};

}  // namespace

TEST_CASE("every tile runs once, by a worker of the pool") {
  for (const int workers : kTeams) {
    const Pool pool(workers);
    for (const int64_t tiles : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tiles));
      std::atomic<bool> stranger{false};
      pool.run(tiles, [&](int64_t i, int worker) {
        ++runs[static_cast<size_t>(i)];
        if (worker < 0 || worker >= workers) stranger = true;
      });
      for (const auto& n : runs) REQUIRE(n == 1);
      CHECK_FALSE(stranger);
    }
  }
}

TEST_CASE("workers really work side by side") {
  const Pool pool(4);
  std::atomic<int> inside{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<bool> late{false};
  pool.run(4, [&](int64_t, int) {  // ends only when all four are here at once
    ++inside;
    while (inside < 4 && !late) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > deadline) late = true;
    }
  });
  CHECK_FALSE(late);
  CHECK(inside == 4);
}

TEST_CASE("seconds of all workers are counted") {
  const Pool pool(2);
  CHECK(pool.busy_seconds() == 0);
  pool.run(2, [](int64_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  CHECK(pool.busy_seconds() >= 0.04 * 0.99);
}

TEST_CASE("sums over tiles do not depend on the number of workers") {
  std::vector<double> sums;
  for (const int workers : kTeams) {
    std::vector<float> parts(501);
    Pool(workers).run(501, [&](int64_t i, int) {
      float sum = 0;
      for (int k = 1; k < 100; ++k) sum += 1.0f / static_cast<float>(i * 100 + k);
      parts[static_cast<size_t>(i)] = sum;
    });
    float total = 0;
    for (const float p : parts) total += p;
    sums.push_back(total);
  }
  for (const double s : sums) CHECK(s == sums[0]);
}

TEST_CASE("the exception of the first tile comes out, after all tiles ended") {
  for (const int workers : kTeams) {
    const Pool pool(workers);
    std::atomic<int> ended{0};
    try {
      pool.run(100, [&](int64_t i, int) {
        ++ended;
        if (i % 10 == 3) throw input_error("tile " + std::to_string(i));
      });
      FAIL("not raised");
    } catch (const Error& e) {
      CHECK(std::string(e.what()) == "tile 3");
    }
    CHECK(ended == 100);
    int again = 0;
    pool.run(1, [&](int64_t, int) { ++again; });
    CHECK(again == 1);
  }
}

TEST_CASE("workers flush denormals, the caller does not") {
  for (const int workers : kTeams) {
    volatile float tiny = std::numeric_limits<float>::min();
    std::atomic<int> kept{0};
    Pool(workers).run(50, [&](int64_t, int) {
      volatile float half = tiny * 0.5f;  // FTZ
      volatile float denormal = std::numeric_limits<float>::denorm_min();
      volatile float scaled = denormal * 0x1p100f;  // DAZ
      if (half != 0 || scaled != 0) ++kept;
    });
    CHECK(kept == 0);
    volatile float half = tiny * 0.5f;
    CHECK(half != 0);
  }
}

TEST_CASE("a library inside a tile gets one thread") {
  const int before = omp_get_max_threads();
  for (const int workers : kTeams) {
    std::atomic<int> most{0};
    Pool(workers).run(20, [&](int64_t, int) {
      if (omp_get_max_threads() > most) most = omp_get_max_threads();
    });
    CHECK(most == 1);
  }
  CHECK(omp_get_max_threads() == before);
}

TEST_CASE("workers are bound to the cores given") {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &allowed)) cores.push_back(i);
  }
  const int workers = static_cast<int>(std::min<size_t>(cores.size(), 4));
  std::atomic<int> wrong{0};
  std::thread([&] {  // a thread of its own, as a stream has: its affinity goes with it
    Pool(workers, cores).run(100, [&](int64_t, int worker) {
      cpu_set_t mine;
      sched_getaffinity(0, sizeof mine, &mine);
      if (CPU_COUNT(&mine) != 1 ||
          !CPU_ISSET(static_cast<size_t>(cores[static_cast<size_t>(worker)]), &mine))
        ++wrong;
    });
  })
      .join();
  CHECK(wrong == 0);
  std::thread([&] {
    CHECK_THROWS_AS(Pool(1, {CPU_SETSIZE - 1}).run(1, [](int64_t, int) {}), Error);
  }).join();
}

TEST_CASE("pools of several threads do not disturb each other") {
  std::vector<std::thread> streams;
  std::atomic<int64_t> sum{0};
  for (int s = 0; s < 3; ++s) {
    streams.emplace_back([&] {
      const Pool pool(3);
      for (int i = 0; i < 50; ++i) pool.run(10, [&](int64_t tile, int) { sum += tile; });
    });
  }
  for (auto& s : streams) s.join();
  CHECK(sum == 3 * 50 * 45);
}

TEST_CASE("an arena is zeroed, kept by touch, and moves") {
  Arena a("test", (size_t{3} << 20) + 5);
  CHECK(a.data()[a.size() - 1] == std::byte{0});
  a.data()[4096] = std::byte{7};
  a.touch(Pool(2));
  CHECK(a.data()[4096] == std::byte{7});
  std::byte* const data = a.data();
  const Arena b(std::move(a));
  CHECK(b.data() == data);
  CHECK(Arena("empty", 0).data() == nullptr);
  try {
    Arena impossible("huge", size_t{1} << 60);
    FAIL("not raised");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::storage);
    CHECK(std::string(e.what()).find("huge") != std::string::npos);
  }
}

TEST_CASE("scratch is a stack") {
  Arena memory("scratch", 4096);
  Scratch scratch(memory.data(), memory.size());
  {
    const Scratch::Frame frame(scratch);
    float* a = scratch.take<float>(3);
    double* b = scratch.take<double>(2);
    CHECK(reinterpret_cast<std::byte*>(b) - reinterpret_cast<std::byte*>(a) == 64);
  }
  CHECK(scratch.take<char>(1) == reinterpret_cast<char*>(memory.data()));
  CHECK_THROWS_AS(scratch.take<char>(5000), std::logic_error);
}
