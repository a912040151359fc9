#include "base/stop.h"

#include <atomic>

#include "base/error.h"

namespace hearth {
namespace {

std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");

}  // namespace

int stop_signal() { return requested.load(std::memory_order_relaxed); }
void set_stop_signal(int signal) { requested.store(signal, std::memory_order_relaxed); }

void leave_if_stopped(const std::string& what) {
  if (stop_signal() == 0) return;
  throw Error(ExitCode::stopped, "stopped by a signal while " + what + "; nothing was changed");
}

}  // namespace hearth
