// What people see on stderr: a progress bar redrawn in place on a terminal, plain lines elsewhere
// (no carriage return, no escape, so that logs stay readable).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "setup/reporter.h"

namespace hearth {

struct ConsoleSettings {
  bool quiet = false;     // warnings only
  bool verbose = false;   // more numbers in a step's line, and lines beside the bar
  int64_t log_every = 1;  // steps a line
  bool terminal = false;  // bar; else lines
  bool colour = false;    // escapes for colour; needs `terminal`
  int width = 80;         // columns of the terminal
};

/// What stderr is: a terminal (unless TERM is "dumb"), its width, and colour unless NO_COLOR is set.
ConsoleSettings console_settings(bool quiet, bool verbose, int64_t log_every);

class Console : public Reporter {
 public:
  explicit Console(const ConsoleSettings& settings) : settings_(settings) {}
  ~Console() override;  // ends the bar's line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void note(const std::string& line) override;
  void warn(const std::string& line) override;
  void progress(const std::string& what, uint64_t done, uint64_t total) override;
  void step(const StepMetrics& metrics, int64_t last) override;

 private:
  void write_line(const std::string& line);
  void draw_bar(const StepMetrics& metrics, int64_t last);
  void show_bar(double share, std::string text);
  void end_bar();

  ConsoleSettings settings_;
  double step_seconds_ = 0;  // smoothed
  std::string under_way_;    // of progress
  std::chrono::steady_clock::time_point began_, shown_;
  std::string bar_;  // that stands in the current line; empty if none
};

/// A step for people: "step 12/100  loss 2.3456  ...", without line break.
std::string step_line(const StepMetrics& metrics, int64_t last, double seconds_left, bool verbose);
/// "42s", "3m05s", "2h10m", "4d02h".
std::string format_time_left(double seconds);
}  // namespace hearth
