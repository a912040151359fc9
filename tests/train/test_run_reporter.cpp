// What a run warns of is shown and journaled.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"
#include "training_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("a refused resume shows no warning of its plan") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.steps = 2;
  config.rank_links.bytes_per_s = 1e9;  // changes nothing with one rank
  RecordingReporter first;
  REQUIRE(train(config, first) == ExitCode::done);
  const auto idle = [](const std::string& line) {
    return line.find("changes nothing here: there is one rank") != std::string::npos;
  };
  CHECK(std::ranges::count_if(first.warnings, idle) == 1);
  config.steps = 1;  // behind the saved state
  RecordingReporter refused;
  CHECK(raised_by([&] { train(config, refused); }).code == ExitCode::usage);
  CHECK(refused.warnings.empty());
  config.steps = 4;
  RecordingReporter resumed;
  CHECK(train(config, resumed) == ExitCode::done);
  CHECK(std::ranges::count_if(resumed.warnings, idle) == 1);
}

TEST_CASE("the journal has the warnings of a run, those of the rooms below among them") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  f.write(f.dir / "rows.jsonl", "{\"text\": 1}\n" + read_file(f.dir / "rows.jsonl"));
  config.skip_bad_rows = 1;
  config.steps = 2;
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const auto warned = [](const std::string& line) {
    return line.find("skipped a bad row: ") != std::string::npos;
  };
  CHECK(std::count_if(reporter.warnings.begin(), reporter.warnings.end(), warned) == 1);
  int journaled = 0;
  for (const std::string& text : f.lines("run/journal.jsonl")) {
    Json line = parse_json(text, "journal");
    if (line["event"].as_string() != "warning") continue;
    journaled += warned(line["message"].as_string());
    CHECK(line["step"].as_int() == 0);
  }
  CHECK(journaled == 1);
}
