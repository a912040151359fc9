// Two loops of the pool, four workers side by side in each. In the second they add to one variable
// without order where `race` is asked for: the thread sanitizer has to tell of it, and of nothing else.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/pool.h"

namespace {

// All four are here at once; relaxed, so that the waiting itself gives no order.
void meet(std::atomic<int>& here) {
  here.fetch_add(1, std::memory_order_relaxed);
  while (here.load(std::memory_order_relaxed) < 4) std::this_thread::yield();
}

}  // namespace

int main(int argc, char** argv) {
  const bool race = argc > 1 && std::strcmp(argv[1], "race") == 0;
  const hearth::Pool pool(4);
  std::array<int, 4> values{};
  std::atomic<int> first{0}, second{0};
  std::array<std::atomic<int>, 100> rounds{};
  volatile int shared = 0;  // volatile: each of the additions is made
  pool.run(4, [&](int64_t i, int) {
    meet(first);
    values[static_cast<size_t>(i)] = static_cast<int>(i);
  });
  pool.run(4, [&](int64_t i, int) {
    meet(second);
    // Written by another worker in the loop before: only that loop's end gives an order.
    int& value = values[static_cast<size_t>(3 - i)];
    value *= value;
    // In many rounds: the sanitizer may miss two accesses at the same instant, and it forgets one
    // whose thread has done much else since.
    for (size_t k = 0; race && k < rounds.size(); ++k) {
      meet(rounds[k]);
      shared = shared + value;
    }
  });
  std::printf("%d\n", shared + values[0]);
  return 0;
}
