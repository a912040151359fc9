// The threads of streams, which all executors of a run share.
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "runtime/stream_threads.h"

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

}  // namespace
}  // namespace hearth::test
