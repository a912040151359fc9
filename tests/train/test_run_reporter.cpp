// What a run warns of is shown and journaled.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "training_fixture.h"

using namespace hearth;
using namespace hearth::test;

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
