#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace hearth {
namespace {

spdlog::logger& logger() {
  // Never destroyed: lines may still come while the program ends.
  static spdlog::logger& made = *[] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_color(spdlog::level::info, sink->reset);
    sink->set_color(spdlog::level::debug, sink->reset);
    auto* log = new spdlog::logger("hearth", std::move(sink));
    log->set_pattern("%^%v%$");
    log->set_level(spdlog::level::info);
    // A stderr that cannot be written must not stop a run, and there is nowhere else to say so.
    log->set_error_handler([](const std::string&) {});
    return log;
  }();
  return made;
}

std::function<void(const std::string&)>& warning_sink() {
  static std::function<void(const std::string&)> sink;
  return sink;
}

thread_local std::vector<HeldLine>* held_lines = nullptr;

}  // namespace

void set_log_level(LogLevel level) {
  switch (level) {
    case LogLevel::quiet: return logger().set_level(spdlog::level::warn);
    case LogLevel::normal: return logger().set_level(spdlog::level::info);
    case LogLevel::verbose: return logger().set_level(spdlog::level::debug);
  }
}

void set_warning_sink(std::function<void(const std::string& message)> sink) {
  warning_sink() = std::move(sink);
}

void log_warning(const std::string& message) {
  if (held_lines != nullptr) return void(held_lines->push_back({true, message}));
  if (warning_sink()) return warning_sink()(message);
  logger().warn("warning: {}", message);
}
void log_info(std::string_view message) {
  if (held_lines != nullptr) return void(held_lines->push_back({false, std::string(message)}));
  logger().info("{}", message);
}
void log_verbose(std::string_view message) { logger().debug("{}", message); }

HeldLog::HeldLog() { held_lines = &lines_; }
HeldLog::~HeldLog() { held_lines = nullptr; }
std::vector<HeldLine> HeldLog::take() { return std::exchange(lines_, {}); }

void log_lines(const std::vector<HeldLine>& lines) {
  for (const HeldLine& line : lines) line.warning ? log_warning(line.text) : log_info(line.text);
}

}  // namespace hearth
