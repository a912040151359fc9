#include "record/run_reporter.h"

#include <utility>

#include "base/log.h"

namespace hearth {

RunReporter::RunReporter(Reporter& to) : to_(to) {
  set_warning_sink([this](const std::string& message) { warn(message); });
}

RunReporter::~RunReporter() { set_warning_sink({}); }

void RunReporter::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  to_.note(line);
}

void RunReporter::warn(const std::string& line) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(line);
  if (shows_) to_.warn(line);
}

void RunReporter::show_warnings() {
  const std::lock_guard lock(mutex_);
  if (shows_) return;
  shows_ = true;
  for (const std::string& line : warnings_) to_.warn(line);
}

void RunReporter::detail(const std::string& line) {
  const std::lock_guard lock(mutex_);
  to_.detail(line);
}

void RunReporter::progress(const std::string& what, uint64_t done, uint64_t total) {
  const std::lock_guard lock(mutex_);
  to_.progress(what, done, total);
}

void RunReporter::step(const StepMetrics& metrics, int64_t last) {
  const std::lock_guard lock(mutex_);
  to_.step(metrics, last);
}

void RunReporter::warn_of_event(const std::string& line) {
  const std::lock_guard lock(mutex_);
  to_.warn(line);
}

std::vector<std::string> RunReporter::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace hearth
