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
