#include "base/log.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using namespace hearth;

TEST_CASE("warnings go to the sink, whatever the level, until it is taken away") {
  std::vector<std::string> heard;
  set_warning_sink([&](const std::string& message) { heard.push_back(message); });
  set_log_level(LogLevel::quiet);
  log_warning("first");
  log_info("no warning");
  set_log_level(LogLevel::normal);
  log_warning("second");
  set_warning_sink({});
  log_warning("of a test: on stderr");
  CHECK(heard == std::vector<std::string>{"first", "second"});
}

TEST_CASE("held lines wait until they are logged, and are dropped if nobody takes them") {
  std::vector<std::string> heard;
  set_warning_sink([&](const std::string& message) { heard.push_back(message); });
  std::vector<HeldLine> lines;
  {
    HeldLog held;
    log_warning("first");
    log_info("of a test: an info");
    lines = held.take();
    log_warning("nobody takes it");
  }
  CHECK(heard.empty());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].warning);
  CHECK_FALSE(lines[1].warning);
  CHECK(lines[1].text == "of a test: an info");
  log_lines(lines);
  log_warning("second");
  set_warning_sink({});
  CHECK(heard == std::vector<std::string>{"first", "second"});
}
