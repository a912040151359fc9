// What a journal tells of the run that wrote it.
#include "record/journal.h"

#include <catch2/catch_test_macros.hpp>
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
