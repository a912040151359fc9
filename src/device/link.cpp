#include "device/link.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace hearth {

namespace {

constexpr double kMostSleep = 1e9;  // seconds; the sum with now fits the clock

}  // namespace

double Link::book(double now, size_t bytes) {
  if (bandwidth_ <= 0) return now;
  const std::lock_guard lock(mutex_);
  free_at_ = std::max(free_at_, now) + static_cast<double>(bytes) / bandwidth_;
  return free_at_;
}

LinkClock& steady_link_clock() {
  class Steady final : public LinkClock {
    using Clock = std::chrono::steady_clock;

   public:
    double now() override {
      return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    }
    void sleep_until(double seconds) override {
      // The kernel may wake a thread 50 us late by default, so that it bundles timers.
      thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1UL);
      static_cast<void>(precise);  // where the call fails, sleeps are less precise
      seconds = std::clamp(seconds, 0.0, now() + kMostSleep);
      std::this_thread::sleep_until(Clock::time_point(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))));
    }
  };
  static Steady clock;
  return clock;
}

}  // namespace hearth
