// Log lines on stderr. Results go to stdout and a run's events to its journal, not here. One call
// writes one line; lines of several threads do not mix. Colour only on a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

enum class LogLevel {
  quiet,  // warnings and errors only (--quiet)
  normal,
  verbose,  // details too (--verbose)
};

/// Call once at the start; the level is `normal` before.
void set_log_level(LogLevel level);

/// Sends warnings to `sink` instead of stderr; an empty sink restores stderr. A run shows them
/// beside its progress and keeps them for its journal. The thread that warns calls the sink. Call
/// this only while no other thread warns.
void set_warning_sink(std::function<void(const std::string& message)> sink);

void log_warning(const std::string& message);  // "warning: ..."
void log_info(std::string_view message);
void log_verbose(std::string_view message);

struct HeldLine {
  bool warning = false;
  std::string text;
};

/// RAII: holds the warnings and infos of this thread until destroyed. Lines that nobody takes are
/// dropped: a refused run has one line, its error. The thread has at most one at a time.
class HeldLog {
 public:
  HeldLog();
  ~HeldLog();
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;
  std::vector<HeldLine> take();

 private:
  std::vector<HeldLine> lines_;
};

void log_lines(const std::vector<HeldLine>& lines);

}  // namespace hearth
