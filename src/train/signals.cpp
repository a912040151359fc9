#include "train/signals.h"

#include <unistd.h>
#include <csignal>

#include <array>

#include "base/error.h"

namespace hearth {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};
volatile std::sig_atomic_t received_signal = 0;
std::array<struct sigaction, kSignals.size()> previous;

extern "C" void on_stop_signal(int signal) {
  if (received_signal != 0) _exit(static_cast<int>(ExitCode::stopped));
  received_signal = signal;
}

}  // namespace

StopSignals::StopSignals() {
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

int StopSignals::received() { return received_signal; }

}  // namespace hearth
