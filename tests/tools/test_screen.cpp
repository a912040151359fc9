// What train says on the screen: few lines before step 1 and at the end; the rest with --verbose.
#include <algorithm>
#include <sstream>

#include "base/sanitized.h"
#include "workplace.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Screen {
  std::vector<std::string> before, steps, after;  // lines
};

Screen screen_of(const ProgramResult& r) {
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  Screen screen;
  std::istringstream lines(r.err);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string>& part = line.starts_with("step ") ? screen.steps
                                     : screen.steps.empty()    ? screen.before
                                                               : screen.after;
    part.push_back(line);
  }
  return screen;
}

}  // namespace

TEST_CASE("screen: at most eight lines before step 1 and eight at the end") {
  const Workplace w;
  int runs = 0;
  for (const char* method : {"full", "lora"}) {
    for (const char* devices : {"host", "virtual", "2xvirtual,host"}) {
      const std::string out = "run" + std::to_string(runs++);
      const Screen screen =
          screen_of(w.run(w.train(out, {"--method", method, "--devices", devices})));
      INFO(method << " on " << devices);
      CHECK(screen.before.size() >= 2);
      CHECK(screen.before.size() <= 8);
      CHECK(screen.steps.size() == 4);
      CHECK(screen.after.size() >= 3);
      CHECK(screen.after.size() <= 8);
    }
  }
}

TEST_CASE("screen: --verbose says more, --quiet nothing") {
  const Workplace w;
  const Screen few = screen_of(w.run(w.train("few", {"--method", "lora"})));
  const Screen all = screen_of(w.run(w.train("all", {"--method", "lora", "--verbose"})));
  CHECK(all.before.size() > few.before.size());
  CHECK(all.after.size() > few.after.size());
  const ProgramResult none = w.run(w.train("none", {"--method", "lora", "--quiet"}));
  CHECK(none.exit_code == 0);
  if (!kSanitized) CHECK(none.err.empty());  // else memory above the plan is told
}
