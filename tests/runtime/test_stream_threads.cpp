// The threads of streams, which all executors of a run share.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "base/pool.h"
#include "runtime/stream_threads.h"
#include "support/allowed_cpus.h"

namespace hearth::test {
namespace {

TEST_CASE("stream threads: each stream keeps its thread, whatever schedule runs") {
  StreamThreads threads(4);
  std::vector<std::thread::id> first(4);
  threads.run(4, [&](size_t s) { first[s] = std::this_thread::get_id(); });
  CHECK(first[0] == std::this_thread::get_id());
  for (size_t a = 0; a < 4; ++a) {
    for (size_t b = 0; b < a; ++b) CHECK(first[a] != first[b]);
  }
  // Schedules of fewer streams leave the others alone.
  for (const size_t streams : {1, 3, 2, 4, 1, 4}) {
    std::vector<std::thread::id> now(4);
    std::vector<int> calls(4);
    threads.run(streams, [&](size_t s) {
      now[s] = std::this_thread::get_id();
      ++calls[s];
    });
    for (size_t s = 0; s < 4; ++s) {
      INFO(streams << " streams, stream " << s);
      CHECK(calls[s] == (s < streams ? 1 : 0));
      CHECK(now[s] == (s < streams ? first[s] : std::thread::id()));
    }
  }
  CHECK_THROWS_AS(threads.run(5, [](size_t) {}), std::logic_error);
  CHECK_THROWS_AS(threads.run(0, [](size_t) {}), std::logic_error);
}

TEST_CASE("stream threads: may use every CPU, whatever the thread that made them is bound to") {
  unbind_thread();
  const std::set<int> all = allowed_cpus();
  const Pool bound(1, {*all.begin()});
  const auto bind = [&] { bound.run(1, [](int64_t, int) {}); };
  bind();
  CHECK(allowed_cpus().size() == 1);
  StreamThreads threads(3);
  std::atomic<int> free{0};
  threads.run(3, [&](size_t s) {
    if (s > 0) free += allowed_cpus() == all ? 1 : 0;
  });
  CHECK(free == 2);
  // A thread that was let free is bound again by the next pool.
  unbind_thread();
  bind();
  CHECK(allowed_cpus().size() == 1);
  unbind_thread();
}

}  // namespace
}  // namespace hearth::test
