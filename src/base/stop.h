// The request to stop that a signal makes (train/signals.h), where long work can see it.
#pragma once

#include <string>

namespace hearth {

/// The signal that asked the process to stop, 0 if none did. Any thread may ask.
int stop_signal();
/// For the handler alone: safe in one.
void set_stop_signal(int signal);

/// Raises an Error of the code `stopped` if the process was asked to stop. Call it between chunks of
/// long work, only while nothing has been modified or every modification can still be rolled back.
/// `what` names the work, such as "the model was read".
void leave_if_stopped(const std::string& what);

}  // namespace hearth
