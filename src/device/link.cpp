#include "device/link.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace hearth {

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
      std::this_thread::sleep_until(Clock::time_point(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))));
    }
  };
  static Steady clock;
  return clock;
}

}  // namespace hearth
