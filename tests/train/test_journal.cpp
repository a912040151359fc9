// What a journal tells of the run that wrote it.
#include "record/journal.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>

#include "support/temporary_directory.h"

using namespace hearth;

TEST_CASE("the end of a run is read from its journal") {
  test::TemporaryDirectory d;
  const std::string path = d / "journal.jsonl";
  CHECK_FALSE(read_journaled_run(path).end);
  const auto after = [&](const std::string& line) {
    std::ofstream(path, std::ios::binary | std::ios::app) << line << "\n";
    return read_journaled_run(path).end;
  };
  CHECK_FALSE(after(R"({"event": "start", "steps": 8})"));
  CHECK_FALSE(after(R"({"event": "finished"})"));
  CHECK(after(R"({"event": "finished", "step": 8})") == 8);
  CHECK(after(R"({"event": "state_rejected", "step": 3})") == 8);
  CHECK(after("{\"event\": \"fin") == 8);
  CHECK(after("[]") == 8);
  CHECK_FALSE(after(R"({"event": "resume", "step": 8})"));
}

TEST_CASE("whose result it is, and what was evaluated, is read from the journal") {
  test::TemporaryDirectory d;
  const std::string path = d / "journal.jsonl";
  CHECK_FALSE(read_journaled_run(path).identity);
  const auto after = [&](const std::string& line) {
    std::ofstream(path, std::ios::binary | std::ios::app) << line << "\n";
    return read_journaled_run(path).identity;
  };
  CHECK_FALSE(after(R"({"event": "start", "run": {"a": 1}})"));
  CHECK_FALSE(after(R"({"event": "finished", "step": 8})"));
  CHECK_FALSE(after(R"({"event": "finished", "step": 8, "run": "a"})"));
  CHECK(after(R"({"event": "finished", "run": {"a": 1}})")->dump() == R"({"a": 1})");
  CHECK(after(R"({"event": "eval", "step": 8})"));
  CHECK_FALSE(after(R"({"event": "resume", "step": 8})"));
  CHECK(after(R"({"event": "finished", "run": {}})"));
  CHECK_FALSE(after(R"({"event": "start"})"));
  CHECK(read_journaled_run(path).loss_at(8));
  CHECK_FALSE(read_journaled_run(path).loss_at(7));
  CHECK_FALSE(read_journaled_run(d / "none").loss_at(8));
}

TEST_CASE("what the verdict of the last end was is read from the journal") {
  test::TemporaryDirectory d;
  const std::string path = d / "journal.jsonl";
  const auto after = [&](const std::string& line) {
    std::ofstream(path, std::ios::binary | std::ios::app) << line << "\n";
    return read_journaled_run(path).alarm;
  };
  const std::string alarm = R"({"event": "verdict", "verdict": "alarm", "reasons": )";
  CHECK_FALSE(after(R"({"event": "finished", "step": 8})"));
  CHECK(after(alarm + R"(["the loss rose", "a router collapsed"]})") ==
        "the loss rose; a router collapsed");
  CHECK(after(alarm + R"([5, "the loss rose"]})") == "the loss rose");
  CHECK(after(alarm + "[]}") == "");
  // A later verdict counts, and what is none is no alarm.
  for (const std::string& other :
       {std::string(R"({"event": "verdict", "verdict": "ok", "reasons": ["x"]})"),
        std::string(R"({"event": "verdict", "verdict": 5, "reasons": ["x"]})"),
        std::string(R"({"event": "verdict", "reasons": ["x"]})"), alarm + "5}",
        std::string(R"({"event": "verdict", "verdict": "alarm"})")}) {
    INFO(other);
    REQUIRE(after(alarm + R"(["x"]})"));
    CHECK_FALSE(after(other));
  }
  REQUIRE(after(alarm + R"(["x"]})"));
  CHECK_FALSE(after(R"({"event": "resume", "step": 8})"));
}

TEST_CASE("evaluations and ends without a step, or without a loss") {
  test::TemporaryDirectory d;
  const std::string path = d / "journal.jsonl";
  std::ofstream(path, std::ios::binary) << R"({"event": "eval", "step": 2, "loss": 0.5})"
                                        << "\n"
                                        << R"({"event": "eval", "step": 4, "loss": "inf"})"
                                        << "\n"
                                        << R"({"event": "eval", "step": 6, "loss": 3})"
                                        << "\n"
                                        << R"({"event": "eval", "step": 6, "loss": 2})"
                                        << "\n"
                                        << R"({"event": "eval", "loss": 9})"
                                        << "\n"
                                        << R"({"event": "eval", "step": "8", "loss": 9})"
                                        << "\n"
                                        << R"({"event": "finished", "step": -1})"
                                        << "\n";
  const JournaledRun run = read_journaled_run(path);
  CHECK(run.evaluation_losses.size() == 3);
  CHECK(run.loss_at(2) == 0.5);
  CHECK(std::isnan(run.loss_at(4).value()));
  CHECK(run.loss_at(6) == 2.0);
  CHECK_FALSE(run.end);
}
