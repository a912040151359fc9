// Too little address space: the plan was made for more, so the program ends with 4 wherever an
// allocation fails, and goes on later.
#include <catch2/catch_test_macros.hpp>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <sstream>

#include "base/sanitized.h"
#include "durable/tiny_run.h"
#include "support/isa.h"

namespace hearth::test {
namespace {

/// Without warnings of saves that failed, which a run may print before memory runs out elsewhere.
Ended without_failed_saves(Ended end) {
  std::istringstream lines(end.err);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("warning: the state of step ")) rest += line + '\n';
  }
  end.err = rest;
  return end;
}

TEST_CASE("memory: every limit of address space ends with a line, none with a signal") {
  if (kSanitized) SKIP("sanitizers reserve terabytes");
  const TinyRun tiny;
  // Other instruction sets, other memory: oneDNN generates code for bf16 products alone.
  const std::vector<std::string> isas =
      isas_of_machine([&] { return tiny.run(tiny.command({"--version"})).code == 0; });
  const std::string name = GENERATE_COPY(from_range(isas));
  INFO("HEARTH_ISA=" << name);
  const WithVariable isa("HEARTH_ISA", name);
  REQUIRE(tiny.run(tiny.train("whole")).code == 0);
  const Outcome expected = tiny.outcome("whole");
  int refused = 0;
  for (rlim_t megabytes = 30; megabytes < 1000; ++megabytes) {
    Start start = tiny.train("run", {"--threads", "1"});
    start.limits = {{RLIMIT_AS, megabytes << 20}};
    const Ended end = tiny.run(start);
    INFO(megabytes << " MB: " << end.err);
    if (end.code == 0) break;
    if (end.code == 127) continue;  // not even its libraries
    // Loaded, but OpenMP's does not start: that ends a program before its own code runs.
    if (refused == 0 && end.err.starts_with("\nlibgomp: Out of memory")) continue;
    CHECK(wrong_refusal(without_failed_saves(end), 4, {"memory"}) == "");
    ++refused;
  }
  CHECK(refused > 2);
  CHECK(tiny.finish(tiny.train("run")) == "");
  CHECK(tiny.wrong_at_end("run", 2, expected) == "");
}

}  // namespace
}  // namespace hearth::test
