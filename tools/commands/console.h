// Output on stderr: on a terminal, a progress bar redrawn in place; elsewhere plain lines, without
// carriage returns or escapes, so logs stay readable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "setup/reporter.h"

namespace hearth {

struct ConsoleSettings {
  bool quiet = false;     // warnings only
  bool verbose = false;   // more numbers per step, and lines in addition to the bar
  int64_t log_every = 1;  // steps per line
  bool terminal = false;  // draw the bar; else print lines
  bool colour = false;    // use colour escapes; needs `terminal`
  int width = 80;         // columns of the terminal
};

/// Detects stderr: whether it is a terminal (not if TERM is "dumb"), its width, and colour unless
/// NO_COLOR is set.
ConsoleSettings console_settings(bool quiet, bool verbose, int64_t log_every);

class Console : public Reporter {
 public:
  explicit Console(const ConsoleSettings& settings) : settings_(settings) {}
  ~Console() override;  // ends the line of the bar
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void note(const std::string& line) override;
  void warn(const std::string& line) override;
  void detail(const std::string& line) override;  // with `verbose` only
  void progress(const std::string& what, uint64_t done, uint64_t total) override;
  void step(const StepMetrics& metrics, int64_t last) override;
  /// Progress of work with a time limit: `share` of it is over, 0 to 1. `what` may change. Call at
  /// the end with an empty `what`.
  void show_share(const std::string& what, double share);

 private:
  void write_line(const std::string& line);
  void draw_bar(const StepMetrics& metrics, int64_t last);
  void show_bar(double share, std::string text);
  void end_bar();

  ConsoleSettings settings_;
  double step_seconds_ = 0;  // smoothed
  std::string under_way_;    // `what` of the current progress
  std::chrono::steady_clock::time_point began_, shown_;
  std::string bar_;  // text of the bar on screen; empty if none
};

/// A step as a line for people: "step 12/100 loss 2.3456 ...", without line break.
std::string step_line(const StepMetrics& metrics, int64_t last, double seconds_left, bool verbose);
/// "42s", "3m05s", "2h10m", "4d02h".
std::string format_time_left(double seconds);
}  // namespace hearth
