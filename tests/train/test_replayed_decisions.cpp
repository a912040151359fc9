// --replay-decisions: a run divides experts as the full journal of another one says.
#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "train/aptmoe_runs.h"

namespace hearth::test {
namespace {

/// A run whose journal has every decision.
struct RecordedRun {
  SameBitsFixture f;
  TrainedWith with{"olmoe", 0.0};
  std::string journal;

  RecordedRun() {
    TrainConfig config = aptmoe_run(f, "recorded", with);
    config.all_decisions = true;
    REQUIRE(f.run(config) == ExitCode::done);
    journal = f.dir / "recorded/journal.jsonl";
  }
  /// A run with an equation that would decide otherwise.
  TrainConfig replaying(const std::string& out, const std::string& from, bool full) const {
    TrainConfig config = aptmoe_run(f, out, with);
    config.printed_equation = true;
    config.replay_decisions = from;
    config.all_decisions = full;
    return config;
  }
  /// The journal without its first decision that has `mark`, or with the last `from` replaced there. Returns
  /// the line's number.
  int64_t change(const std::string& path, const std::string& mark, const std::string& from = "",
                 const std::string& to = "") const {
    std::istringstream lines(read_file(journal));
    std::string text;
    int64_t number = 0, found = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const bool is_decision = line.find("\"decision\"") != std::string::npos;
      if (found == 0 && is_decision && line.find(mark) != std::string::npos) {
        found = number;
        if (from.empty()) continue;
        const size_t at = line.rfind(from);
        REQUIRE(at != std::string::npos);
        line.replace(at, from.size(), to);
      }
      text += line + "\n";
    }
    REQUIRE(found > 0);
    f.write(path, text);
    return found;
  }
};

/// The decisions of a full journal, without the times of their lines.
std::vector<std::string> decisions_in(const std::string& path) {
  std::vector<std::string> texts;
  for (Json event : events_of(path, "decision")) {
    std::erase_if(event.as_object(), [](const auto& member) { return member.first == "time"; });
    texts.push_back(event.dump());
  }
  return texts;
}

TEST_CASE("replayed decisions: a run repeats those of a full journal, whatever its rule says") {
  RecordedRun r;
  SameBitsFixture& f = r.f;
  REQUIRE(f.run(r.replaying("full", r.journal, true)) == ExitCode::done);
  const std::vector<std::string> recorded = decisions_in(r.journal);
  CHECK(recorded.size() >= 9);  // three steps, three layers
  CHECK(decisions_in(f.dir / "full/journal.jsonl") == recorded);
  CHECK(f.root("full") == f.root("recorded"));
  CHECK(f.result("full") == f.result("recorded"));

  const auto digests = [&](const TrainConfig& config) {
    REQUIRE(f.run(config) == ExitCode::done);
    return digests_in(events_of(config.out + "/journal.jsonl", "decisions"));
  };
  const auto plain = digests(aptmoe_run(f, "plain", r.with));
  CHECK(plain.size() == 3);
  CHECK(digests(r.replaying("digests", r.journal, false)) == plain);
}

TEST_CASE("replayed decisions: also one that no rule made, and from the step of a resume on") {
  RecordedRun r;
  SameBitsFixture& f = r.f;
  const std::string moved = f.dir / "moved.jsonl";
  r.change(moved, "\"step\": 2", "\"virtual:0\"", "\"host\"");
  const TrainConfig config = r.replaying("moved", moved, true);
  REQUIRE(f.run_until(config, 1) == ExitCode::stopped);
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(decisions_in(f.dir / "moved/journal.jsonl") == decisions_in(moved));
  CHECK(decisions_in(moved) != decisions_in(r.journal));
  CHECK(f.root("moved") == f.root("recorded"));
  // Of the resumed run's journal, too.
  REQUIRE(f.run(r.replaying("again", f.dir / "moved/journal.jsonl", true)) == ExitCode::done);
  CHECK(decisions_in(f.dir / "again/journal.jsonl") == decisions_in(moved));
}

TEST_CASE("replayed decisions: a torn last line counts for nothing") {
  RecordedRun r;
  SameBitsFixture& f = r.f;
  f.write(f.dir / "torn.jsonl", read_file(r.journal) + "{\"event\": \"deci");
  CHECK(f.run(r.replaying("torn", f.dir / "torn.jsonl", false)) == ExitCode::done);
  f.write(f.dir / "bad.jsonl", "{\"event\": \"deci\n" + read_file(r.journal));
  const Raised refused = raised_by([&] { f.run(r.replaying("bad", f.dir / "bad.jsonl", false)); });
  CHECK(refused.code == ExitCode::input);
  CHECK(refused.says("bad.jsonl:1"));
}

TEST_CASE("replayed decisions: a journal that does not fit is refused with its line") {
  RecordedRun r;
  SameBitsFixture& f = r.f;
  const std::string bad = f.dir / "bad.jsonl";
  struct Misfit {
    std::string mark, from, to, part;
  };
  int number = 0;
  for (const Misfit& c : std::vector<Misfit>{
           {"\"step\": 2", "\"layer\": 0", "\"layer\": 3", "layer: the model has no such layer"},
           {"\"step\": 2", "\"step\": 2", "\"step\": 0", "step: expected a step"},
           {"\"step\": 1", "\"layer\"", "\"layers\"", "layer: is missing"},
           {"\"step\": 1", "\"forward\"", "\"backward\"", "phase: expected 'forward'"},
           {"\"step\": 1", "\"device\": \"virtual:0", "\"device\": \"cuda:0",
            "device: here the layer"},
           {"\"step\": 1", "\"tokens\": [", "\"tokens\": [1,", "tokens: has 6 entries"},
           {"\"step\": 1", "\"tokens\": [", "\"tokens\": [-1", "tokens: expected a count"},
           {"\"step\": 1", "\"where\": [", "\"where\": [\"host\",", "where: has 6 entries"},
           {"\"step\": 1", "\"where\": [\"", "\"where\": [\"x",
            "where: expected 'virtual:0' or 'host'"},
           {"\"step\": 1", "\"reason\": [\"", "\"reason\": [\"x", "reason: an unknown one"},
           {"\"step\": 3", "\"tokens\": [", "\"tokens\": [1", "it is the journal of another run"},
       }) {
    const int64_t line = r.change(bad, c.mark, c.from, c.to);
    const Raised refused =
        raised_by([&] { f.run(r.replaying("bad" + std::to_string(number++), bad, false)); });
    INFO(c.from << " -> " << c.to << ": " << refused.message);
    CHECK(refused.code == ExitCode::input);
    CHECK(refused.says(c.part));
    CHECK(refused.says("bad.jsonl:" + std::to_string(line) + ": "));
  }
}

TEST_CASE("replayed decisions: a missing one is noticed before the first step") {
  RecordedRun r;
  SameBitsFixture& f = r.f;
  const std::string bad = f.dir / "bad.jsonl";
  const int64_t second = r.change(bad, "\"step\": 2, \"layer\": 1");
  const TrainConfig config = r.replaying("missing", bad, false);
  const Raised refused = raised_by([&] { f.run(config); });
  INFO(refused.message);
  CHECK(refused.code == ExitCode::input);
  CHECK(refused.says("bad.jsonl:" + std::to_string(second - 1) + ": behind this line"));
  CHECK(refused.says("layer 1 in step 2 is missing"));
  CHECK(file_info(config.out + "/metrics.jsonl").kind == FileKind::none);
  // A run of more steps than were recorded.
  TrainConfig longer = r.replaying("longer", r.journal, false);
  longer.steps = 4;
  CHECK(raised_by([&] { f.run(longer); }).says("in step 4 is missing"));
}

}  // namespace
}  // namespace hearth::test
