#include "commands/console.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/size_text.h"
#include "base/utf8.h"

namespace hearth {
namespace {

constexpr int kBarCells = 24;
constexpr auto kBarPause = std::chrono::milliseconds(200);  // between two bars of progress
constexpr auto kLinePause = std::chrono::milliseconds(10'000);
constexpr double kSmoothing = 0.1;  // weight of the newest step in the time that is left

void write_stderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);  // nothing can be told where this fails
  std::fflush(stderr);
}

// File names and texts from outside are part of lines: none may act on the terminal.
std::string harmless(const std::string& text) {
  std::string result = replace_invalid_utf8(text);
  for (size_t i = 0; i < result.size(); ++i) {
    const auto c = static_cast<unsigned char>(result[i]);
    const bool c1 = c == 0xc2 && i + 1 < result.size() &&
                    static_cast<unsigned char>(result[i + 1]) < 0xa0;  // U+0080 to U+009F
    if (c1) result.erase(i, 1);
    if (c1 || c == 0x7f || (c < 0x20 && c != '\n')) result[i] = '?';
  }
  return result;
}

std::string loss_text(const StepMetrics& metrics) {
  return std::isfinite(metrics.loss) ? fmt::format("{:.4f}", metrics.loss) : "not finite";
}

/// The sign of a NaN says nothing.
double unsigned_nan(double x) { return std::isnan(x) ? std::abs(x) : x; }

}  // namespace

ConsoleSettings console_settings(bool quiet, bool verbose, int64_t log_every) {
  ConsoleSettings settings{.quiet = quiet, .verbose = verbose, .log_every = log_every};
  const char* term = std::getenv("TERM");
  settings.terminal = ::isatty(STDERR_FILENO) == 1 && term && std::string(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  settings.colour = settings.terminal && (!no_color || !*no_color);
  winsize size{};
  if (settings.terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    settings.width = size.ws_col;
  }
  return settings;
}

std::string format_time_left(double seconds) {
  const double bounded = std::isfinite(seconds) ? std::clamp(seconds, 0.0, 9e8) : 0.0;
  const auto s = static_cast<int64_t>(std::llround(bounded));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string step_line(const StepMetrics& metrics, int64_t last, double seconds_left, bool verbose) {
  std::string line = fmt::format("step {}/{}  loss {}  grad_norm {:.3g}  lr {:.3g}  {:.0f} tok/s",
                                 metrics.step, last, loss_text(metrics),
                                 unsigned_nan(metrics.grad_norm), metrics.lr, metrics.tokens_per_s);
  if (verbose) {
    const auto& load = metrics.expert_load;
    line += fmt::format("  aux_loss {:.4f}  {} tokens  {:.3f} s  {:.1f} % of bound",
                        unsigned_nan(metrics.aux_loss), metrics.tokens, metrics.time_s,
                        metrics.bound_pct);
    if (!load.empty()) {
      line += fmt::format("  expert load {:.2f}", *std::max_element(load.begin(), load.end()));
    }
    line += "  peak " + size_text(metrics.peak_rss_bytes);
  }
  if (metrics.skipped) line += "  skipped: not finite";
  if (metrics.step < last) line += "  ETA " + format_time_left(seconds_left);
  return line;
}

Console::~Console() { end_bar(); }

void Console::end_bar() {
  if (!bar_.empty()) write_stderr("\n");
  bar_.clear();
}

void Console::write_line(const std::string& line) {
  // Above the bar, if there is one.
  write_stderr(bar_.empty() ? line + "\n" : "\r\x1b[K" + line + "\n" + bar_);
}

void Console::note(const std::string& line) {
  if (!settings_.quiet) write_line(harmless(line));
}

void Console::detail(const std::string& line) {
  if (settings_.verbose) note(line);
}

void Console::warn(const std::string& line) {
  const std::string mark = settings_.colour ? "\x1b[33mwarning:\x1b[0m " : "warning: ";
  write_line(mark + harmless(line));
}

void Console::show_bar(double share, std::string text) {
  const int cells = std::clamp(static_cast<int>(share * kBarCells), 0, kBarCells);
  if (settings_.width > kBarCells + 4 + static_cast<int>(text.size())) {
    const std::string full(static_cast<size_t>(cells), '#');
    const std::string rest(static_cast<size_t>(kBarCells - cells), '.');
    text = (settings_.colour ? "[\x1b[32m" + full + "\x1b[0m" : "[" + full) + rest + "] " + text;
  } else {
    text.resize(std::min(text.size(), static_cast<size_t>(std::max(settings_.width - 1, 1))));
  }
  bar_ = text;
  write_stderr("\r" + bar_ + "\x1b[K");
}

void Console::draw_bar(const StepMetrics& metrics, int64_t last) {
  const double left = step_seconds_ * static_cast<double>(last - metrics.step);
  show_bar(last > 0 ? static_cast<double>(metrics.step) / static_cast<double>(last) : 1,
           fmt::format("step {}/{}  loss {}  {:.0f} tok/s  ETA {}", metrics.step, last,
                       loss_text(metrics), metrics.tokens_per_s, format_time_left(left)));
  if (metrics.step >= last) end_bar();
}

void Console::progress(const std::string& what, uint64_t done, uint64_t total) {
  if (settings_.quiet) return;
  const auto now = std::chrono::steady_clock::now();
  if (what != under_way_) {
    if (!bar_.empty()) write_stderr("\r\x1b[K");
    bar_.clear();
    under_way_ = what;
    began_ = shown_ = now;
  }
  if (what.empty() || now - shown_ < (settings_.terminal ? kBarPause : kLinePause)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const auto bytes = static_cast<double>(done);
  std::string text = harmless(what);
  if (done > 0) text += fmt::format(": {:.1f} MB, {:.1f} MB/s", bytes / 1e6, bytes / 1e6 / seconds);
  const double share = total > 0 ? bytes / static_cast<double>(total) : 0;
  if (share > 0 && share <= 1) {
    text += fmt::format(", {:.0f} %  ETA {}", 100 * share,
                        format_time_left(seconds * (1 - share) / share));
  }
  if (settings_.terminal) {
    show_bar(share, text);
  } else {
    write_line(text);
  }
}

void Console::show_share(const std::string& what, double share) {
  if (settings_.quiet) return;
  if (what.empty()) {
    end_bar();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (shown_ == std::chrono::steady_clock::time_point{}) shown_ = now;
  if (now - shown_ < (settings_.terminal ? kBarPause : kLinePause)) return;
  shown_ = now;
  const std::string text = fmt::format("{}, {:.0f} %", harmless(what), 100 * share);
  if (settings_.terminal) {
    show_bar(share, text);
  } else {
    write_line(text);
  }
}

void Console::step(const StepMetrics& metrics, int64_t last) {
  if (settings_.quiet) return;
  step_seconds_ = step_seconds_ == 0
                      ? metrics.time_s
                      : (1 - kSmoothing) * step_seconds_ + kSmoothing * metrics.time_s;
  const bool due =
      metrics.step % settings_.log_every == 0 || metrics.step == last || metrics.skipped;
  if (due && (!settings_.terminal || settings_.verbose)) {
    const double left = step_seconds_ * static_cast<double>(last - metrics.step);
    write_line(step_line(metrics, last, left, settings_.verbose));
  }
  if (settings_.terminal) draw_bar(metrics, last);
}

}  // namespace hearth
