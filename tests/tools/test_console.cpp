#include "commands/console.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>

#include "support/temporary_directory.h"

using namespace hearth;

namespace {

// What a console with these settings writes to stderr.
template <class F>
std::string written_by(const ConsoleSettings& settings, const F& f) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "stderr";
  std::fflush(stderr);
  const int saved = ::dup(STDERR_FILENO);
  REQUIRE(std::freopen(path.c_str(), "w", stderr));
  {
    Console console(settings);
    f(console);
  }
  std::fflush(stderr);
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

StepMetrics metrics_of(int64_t step) {
  StepMetrics m;
  m.step = step;
  m.loss = 2.5;
  m.grad_norm = 0.75;
  m.lr = 1e-5;
  m.tokens_per_s = 1234.4;
  m.time_s = 2;
  m.expert_load = {1.25, 2.5};
  return m;
}

}  // namespace

TEST_CASE("plain lines have no escapes and no carriage returns") {
  const std::string text = written_by({.verbose = true}, [](Console& c) {
    c.note("loading \x1b[31m\r\x7f\xc2\x9b model");
    for (int64_t i = 1; i <= 3; ++i) c.step(metrics_of(i), 3);
    c.warn("careful");
  });
  INFO(text);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find("loading ?[31m??? model\n") == 0);
  CHECK(text.find("step 1/3  loss 2.5000  grad_norm 0.75  lr 1e-05  1234 tok/s") !=
        std::string::npos);
  CHECK(text.find("expert load 2.50") != std::string::npos);
  CHECK(text.find("ETA 4s\n") != std::string::npos);
  CHECK(text.ends_with("warning: careful\n"));
}

TEST_CASE("--log-every, --quiet, and steps that were skipped") {
  const auto steps = [](Console& c) {
    c.note("note");
    for (int64_t i = 1; i <= 7; ++i) {
      StepMetrics m = metrics_of(i);
      if (i == 2) {
        m.skipped = true;
        m.loss = std::numeric_limits<double>::quiet_NaN();
      }
      c.step(m, 7);
    }
    c.warn("w");
  };
  const std::string text = written_by({.log_every = 3}, steps);
  INFO(text);
  CHECK(text.find("step 1/7") == std::string::npos);
  CHECK(text.find("step 2/7  loss not finite") != std::string::npos);
  CHECK(text.find("skipped") != std::string::npos);
  CHECK(text.find("step 3/7") != std::string::npos);
  CHECK(text.find("step 4/7") == std::string::npos);
  CHECK(text.find("step 7/7") != std::string::npos);
  CHECK(written_by({.quiet = true}, steps) == "warning: w\n");
}

TEST_CASE("a bar on a terminal, redrawn in place, ended with the run") {
  const auto steps = [](Console& c) {
    c.step(metrics_of(1), 4);
    c.note("saved");
    for (int64_t i = 2; i <= 4; ++i) c.step(metrics_of(i), 4);
    c.note("done");
  };
  const std::string text = written_by({.terminal = true, .width = 100}, steps);
  INFO(text);
  CHECK(text.find("\r[######..................] step 1/4  loss 2.5000  1234 tok/s  ETA 6s") == 0);
  CHECK(text.find("\r\x1b[Ksaved\n[######") != std::string::npos);
  CHECK(text.find("\x1b[32m") == std::string::npos);
  CHECK(text.ends_with("ETA 0s\x1b[K\ndone\n"));
  CHECK(written_by({.terminal = true, .colour = true, .width = 100}, steps).find("\x1b[32m") !=
        std::string::npos);
  // A narrow terminal: no line longer than it, or it would wrap and not be redrawn.
  const std::string narrow =
      written_by({.terminal = true, .width = 20}, [](Console& c) { c.step(metrics_of(1), 4); });
  CHECK(narrow == "\rstep 1/4  loss 2.50\x1b[K\n");
}

TEST_CASE("times that are left") {
  CHECK(format_time_left(0) == "0s");
  CHECK(format_time_left(59.6) == "1m00s");
  CHECK(format_time_left(185) == "3m05s");
  CHECK(format_time_left(7800) == "2h10m");
  CHECK(format_time_left(352800) == "4d02h");
  CHECK(format_time_left(std::numeric_limits<double>::infinity()) == "0s");
}
