// A signal's request to stop (train/signals.h), visible to long work.
#pragma once

#include <string>

namespace hearth {

/// The signal that asked the process to stop, 0 if none did. Any thread may ask.
int stop_signal();
/// Only for the signal handler; async-signal-safe.
void set_stop_signal(int signal);

/// Raises an Error of the code `stopped` if the process was asked to stop. Call it between chunks
/// of long work, only while nothing has been modified or every modification can still be rolled
/// back. `what` names the work, such as "the model was read".
void leave_if_stopped(const std::string& what);

}  // namespace hearth
