#include "train/signals.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "base/error.h"
#include "base/stop.h"

namespace hearth {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};
/// `timeout` and some schedulers send one request twice, to the process and to its group: what comes
/// within this time of the first is no second signal.
constexpr int64_t kOneRequest = 100'000'000;  // ns
volatile int64_t first_at = 0;

int64_t now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

extern "C" void on_stop_signal(int signal) {
  if (stop_signal() == 0) {
    first_at = now();
    set_stop_signal(signal);
  } else if (now() - first_at > kOneRequest) {
    _exit(static_cast<int>(ExitCode::stopped));
  }
}

}  // namespace

StopSignals::StopSignals() {
  set_stop_signal(0);
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // What started the program may have it ignore a lost terminal (nohup): it goes on then.
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() { set_stop_signal(0); }

}  // namespace hearth
