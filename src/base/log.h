// Lines for people, on stderr. Results go to stdout, events of a run to its journal; neither passes
// here. One call is one line; lines of several threads do not mix. Colour only on a terminal.
#pragma once

#include <string_view>

namespace hearth {

enum class LogLevel {
  quiet,  // warnings and errors only (--quiet)
  normal,
  verbose,  // details too (--verbose)
};

/// Set once at the start; `normal` before.
void set_log_level(LogLevel level);
LogLevel log_level();

void log_warning(std::string_view message);  // "warning: ..."
void log_info(std::string_view message);
void log_verbose(std::string_view message);

}  // namespace hearth
