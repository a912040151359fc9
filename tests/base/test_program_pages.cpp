// The pages of the program: all are there once they were asked for.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "base/program_pages.h"
#include "base/sanitized.h"

namespace hearth::test {
namespace {

/// kB of the code of this program: mapped, and resident.
std::pair<int64_t, int64_t> code_of_program() {
  std::ifstream maps("/proc/self/smaps");
  std::pair<int64_t, int64_t> code;
  bool is_code = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first.find('-') != std::string::npos && first.back() != ':') {
      is_code = second == "r-xp" && line.find("/test_base") != std::string::npos;
    }
    if (is_code && first == "Size:") code.first += std::stoll(second);
    if (is_code && first == "Rss:") code.second += std::stoll(second);
  }
  return code;
}

TEST_CASE("program pages: all code is resident once it is mapped") {
  if (kSanitized) SKIP("a sanitizer's program may be larger than what is mapped");
  map_program();
  const auto [mapped, resident] = code_of_program();
  CHECK(mapped > 0);
  CHECK(resident == mapped);
}

}  // namespace
}  // namespace hearth::test
