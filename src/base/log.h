// Lines for people, on stderr. Results go to stdout, events of a run to its journal; neither passes
// here. One call is one line; lines of several threads do not mix. Colour only on a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hearth {

enum class LogLevel {
  quiet,  // warnings and errors only (--quiet)
  normal,
  verbose,  // details too (--verbose)
};

/// Set once at the start; `normal` before.
void set_log_level(LogLevel level);

/// Takes every warning from now on in place of stderr: a run shows them beside its progress and keeps
/// them for its journal. Called by the thread that warns. Empty: stderr again. Set where no thread
/// warns.
void set_warning_sink(std::function<void(const std::string& message)> sink);

void log_warning(const std::string& message);  // "warning: ..."
void log_info(std::string_view message);
void log_verbose(std::string_view message);

}  // namespace hearth
