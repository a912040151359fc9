// Ranks that are processes, started by the real launcher: the bits of one rank, one line of all of them
// where they cannot run, and nothing lost where one is stopped, killed or asked to stop.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file_ops.h"
#include "base/json.h"
#include "durable/tiny_run.h"
#include "state/saved_state.h"
#include "support/test_paths.h"

#ifdef HEARTH_HAS_LAUNCHER

namespace hearth::test {
namespace {

using Words = std::vector<std::string>;

class Launched {
 public:
  const TinyRun tiny;

  Launched() {
    if (::access(test_launcher(), X_OK) != 0) SKIP("the launcher of the build is gone");
    Start version;
    version.words = {"--version"};
    const std::string said = run(test_launcher(), version).out;
    const bool open_mpi = said.find("Open MPI") != said.npos || said.find("OpenRTE") != said.npos;
    if (open_mpi) options_ = {"--oversubscribe", "--allow-run-as-root", "--bind-to", "none"};
  }

  /// Four logical shards a step.
  Words train(const std::string& out, int64_t steps, const Words& more = {},
              const std::string& mode = "dp") const {
    Words words{"train",
                "--model",
                tiny.d / "model",
                "--data",
                tiny.d / "rows.jsonl",
                "--out",
                tiny.d / out,
                "--steps",
                std::to_string(steps),
                "--micro-batch",
                "1",
                "--grad-accum",
                "4",
                "--logical-shards",
                "4",
                "--seq-len",
                "48",
                "--lr",
                "1e-2",
                "--packing",
                "on",
                "--threads",
                "1",
                "--save-every",
                "50",
                "--parallel",
                mode,
                "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// Of each group of ranks: their number, what the launcher is told of them, their arguments.
  struct Group {
    int ranks = 1;
    Words told, words;
  };
  Start start(const std::vector<Group>& groups) const {
    Start start = tiny.command(options_);
    for (const Group& group : groups) {
      if (&group != &groups.front()) start.words.push_back(":");
      start.words.insert(start.words.end(), {"-n", std::to_string(group.ranks)});
      start.words.insert(start.words.end(), group.told.begin(), group.told.end());
      start.words.push_back(test_binary());
      start.words.insert(start.words.end(), group.words.begin(), group.words.end());
    }
    return start;
  }
  Ended run_on(int ranks, const Words& words) const {
    return run(test_launcher(), start({{ranks, {}, words}}));
  }

 private:
  Words options_;
};

/// What the program itself said; launchers have lines of their own.
Words own_lines(const Ended& ended) {
  Words lines;
  for (size_t at = 0, end; (end = ended.err.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = ended.err.substr(at, end - at);
    if (line.starts_with("hearth: ")) lines.push_back(line);
  }
  return lines;
}

/// The process of a rank of the run that writes to `out`; 0: there is none yet.
pid_t process_of(const std::string& out, int rank) {
  for (const std::string& name : list_directory("/proc")) {
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream words("/proc/" + name + "/cmdline"), variables("/proc/" + name + "/environ");
    const std::string all((std::istreambuf_iterator<char>(words)), {});
    const std::string set((std::istreambuf_iterator<char>(variables)), {});
    if (!all.starts_with(test_binary()) || all.find(out) == all.npos) continue;
    for (const char* variable : {"OMPI_COMM_WORLD_RANK=", "PMI_RANK="}) {
      const std::string of_rank = variable + std::to_string(rank) + '\0';
      if (set.find(of_rank) != set.npos) return static_cast<pid_t>(std::stol(name));
    }
  }
  return 0;
}

bool has_steps(const std::string& run, size_t steps) { return metrics_lines(run).size() >= steps; }

Json last_event(const std::string& run, const std::string& name) {
  Json last;
  std::ifstream journal(run + "/journal.jsonl");
  for (std::string line; std::getline(journal, line);) {
    const Json event = parse_json(line, "journal");
    if (event.find("event")->as_string() == name) last = event;
  }
  return last;
}

}  // namespace

TEST_CASE("launched ranks: the bits are those of one rank") {
  const Launched f;
  for (const Words& method : {Words{}, Words{"--method", "lora", "--lora-dropout", "0.1"}}) {
    const std::string kind = method.empty() ? "full" : "lora";
    const Ended one = f.tiny.run(f.tiny.command(f.train(kind + "1", 6, method)));
    INFO(one.err);
    REQUIRE(one.code == 0);
    const Outcome expected = f.tiny.outcome(kind + "1");
    for (const auto& [ranks, mode] :
         std::vector<std::pair<int, std::string>>{{2, "dp"}, {4, "dp"}, {2, "ep"}, {4, "ep"}}) {
      const std::string out = kind + std::to_string(ranks) + mode;
      const Ended ended = f.run_on(ranks, f.train(out, 6, method, mode));
      INFO(out << ": " << ended.err);
      REQUIRE(ended.code == 0);
      CHECK(own_lines(ended).empty());
      const Outcome found = f.tiny.outcome(out);
      CHECK(found.root == expected.root);
      CHECK(found.model == expected.model);
      const std::string line = metrics_lines(f.tiny.d / out).back();
      const Json metrics = parse_json(line, out);
      CHECK(std::ssize(metrics.find("ranks")->as_array()) == ranks);
      CHECK(metrics.find("bytes")->find("0/host->1/host")->as_int() > 0);
    }
    const Ended again = f.run_on(2, f.train(kind + "4ep", 6, method));
    CHECK(again.code == 0);  // nothing is left to do, at any rank
    CHECK(f.tiny.outcome(kind + "4ep").root == expected.root);
  }
}

TEST_CASE("launched ranks: weights that travel compressed\\, as between threads") {
  const Launched f;
  for (const bool consistent : {false, true}) {
    for (const auto& [ranks, domains] :
         std::vector<std::pair<int, std::string>>{{2, "2"}, {4, "2"}}) {
      Words more{"--wire",   "residual:8",          "--wire-threshold", "1",
                 "--levels", std::to_string(ranks), "--domains",        domains};
      if (consistent) more.emplace_back("--wire-consistent");
      const std::string of = std::to_string(ranks) + (consistent ? "consistent" : "");
      Words threads = f.train("threads" + of, 6, more, "hybrid-ep");
      threads.insert(threads.end(), {"--thread-ranks", std::to_string(ranks)});
      const Ended one = f.tiny.run(f.tiny.command(threads));
      INFO(of << ": " << one.err);
      REQUIRE(one.code == 0);
      const Ended ended = f.run_on(ranks, f.train("processes" + of, 6, more, "hybrid-ep"));
      INFO(ended.err);
      REQUIRE(ended.code == 0);
      CHECK(own_lines(ended).empty());
      const Outcome expected = f.tiny.outcome("threads" + of);
      const Outcome found = f.tiny.outcome("processes" + of);
      CHECK(found.root == expected.root);
      CHECK(found.model == expected.model);
      const Json metrics = parse_json(metrics_lines(f.tiny.d / ("processes" + of)).back(), of);
      CHECK(metrics.find("wire")->find("error")->as_array().at(0).as_double() > 0);
    }
  }
  CHECK(f.tiny.outcome("threads2consistent").root == f.tiny.outcome("threads4consistent").root);
  CHECK(f.tiny.outcome("threads2").root != f.tiny.outcome("threads2consistent").root);
}

TEST_CASE("launched ranks: a signal to any of them stops all\\, and other ranks go on") {
  const Launched f;
  REQUIRE(f.tiny.run(f.tiny.command(f.train("whole", 300))).code == 0);
  const Outcome expected = f.tiny.outcome("whole");
  const std::string run = f.tiny.d / "parts";
  int stops = 0;
  for (const auto& [ranks, asked, signal] :
       {std::tuple(2, 1, SIGTERM), {4, 0, SIGUSR1}, {2, 1, SIGUSR2}}) {
    const size_t done = metrics_lines(run).size();
    Process process(test_launcher(), f.start({{ranks, {}, f.train("parts", 300)}}));
    if (process.wait_until([&] { return has_steps(run, done + 10); })) {
      const pid_t id = process_of(run, asked);
      REQUIRE(id > 0);
      ::kill(id, signal);
    }
    const Ended ended = process.wait();
    INFO("stop " << stops << ": " << ended.err);
    REQUIRE(ended.code == 75);
    CHECK(own_lines(ended).empty());
    CHECK(last_event(run, "signal").find("signal")->as_int() == signal);
    const std::vector<int64_t> states = steps_of_states(run);
    REQUIRE(!states.empty());
    CHECK(states.back() == static_cast<int64_t>(metrics_lines(run).size()));
    ++stops;
  }
  REQUIRE(f.tiny.run(f.tiny.command(f.train("parts", 300))).code == 0);  // one rank
  CHECK(f.tiny.outcome("parts").root == expected.root);
  CHECK(f.tiny.outcome("parts").model == expected.model);
}

TEST_CASE("launched ranks: logical shards that nobody named are the ranks of the first start") {
  const Launched f;
  Words words = f.train("run", 300);
  const auto option = std::find(words.begin(), words.end(), "--logical-shards");
  words.erase(option, option + 2);
  const std::string run = f.tiny.d / "run";
  Process process(test_launcher(), f.start({{2, {}, words}}));
  REQUIRE(process.wait_until([&] { return has_steps(run, 10); }));
  ::kill(process_of(run, 1), SIGUSR1);
  REQUIRE(process.wait().code == 75);
  CHECK(read_file(run + "/config.yaml").find("\nlogical-shards: 2\n") != std::string::npos);
  const Ended again = f.run_on(2, words);
  INFO(again.err);
  REQUIRE(again.code == 0);
  Words whole = f.train("whole", 300);
  *(std::find(whole.begin(), whole.end(), "--logical-shards") + 1) = "2";
  REQUIRE(f.tiny.run(f.tiny.command(whole)).code == 0);
  CHECK(f.tiny.outcome("run").root == f.tiny.outcome("whole").root);
}

TEST_CASE("launched ranks: a killed one ends all\\, and the run goes on from the last state") {
  const Launched f;
  REQUIRE(f.tiny.run(f.tiny.command(f.train("whole", 200))).code == 0);
  for (const int killed : {0, 1}) {
    const std::string out = "run" + std::to_string(killed), run = f.tiny.d / out;
    Process process(test_launcher(), f.start({{2, {}, f.train(out, 200)}}));
    REQUIRE(process.wait_until([&] { return has_steps(run, 60); }));
    const pid_t id = process_of(run, killed);
    REQUIRE(id > 0);
    ::kill(id, SIGKILL);
    const Ended ended = process.wait(30);
    INFO("rank " << killed << ": " << ended.err);
    CHECK(ended.code > 0);  // the launcher's, of the signal
    CHECK(ended.code != 75);
    CHECK(process_of(run, 1 - killed) == 0);
    CHECK(f.run_on(4, f.train(out, 200)).code == 0);
    CHECK(f.tiny.outcome(out).root == f.tiny.outcome("whole").root);
    CHECK(f.tiny.outcome(out).model == f.tiny.outcome("whole").model);
  }
}

/// A cost table by which everything takes that long.
std::string even_table(const std::string& seconds) {
  std::string entries;
  for (const char* kind :
       {"embed", "attention", "mlp", "dispatch", "experts", "combine", "head", "norm", "update"}) {
    for (const char* phase : {"forward", "backward"}) {
      for (const char* dtype : {"f32", "bf16"}) {
        if (!entries.empty()) entries += ", ";
        entries += std::string(R"({"kind": ")") + kind + R"(", "phase": ")" + phase +
                   R"(", "dtype": ")" + dtype + R"(", "units": [100000], "seconds": [)" + seconds +
                   "]}";
      }
    }
  }
  return R"({"format": "hearth-costs-1", "device": "host", "machine": "a test", "made": "now",
    "entries": [)" +
         entries + R"(], "links": []})";
}

TEST_CASE("launched ranks: attention and experts apart\\, the bits of one rank") {
  const Launched f;
  write_file_atomically(f.tiny.d / "slow.json", even_table("1e-4"));
  for (const Words& method : {Words{}, Words{"--method", "lora", "--lora-dropout", "0.1"}}) {
    const std::string kind = method.empty() ? "full" : "lora";
    REQUIRE(f.tiny.run(f.tiny.command(f.train(kind, 6, method))).code == 0);
    const Outcome expected = f.tiny.outcome(kind);
    Words more = method;
    more.insert(more.end(), {"--attention-ranks", "2", "--rank-devices",
                             "2-3=host:costs=" + (f.tiny.d / "slow.json")});
    const Ended ended = f.run_on(4, f.train(kind + "4", 6, more, "zebra"));
    INFO(kind << ": " << ended.err);
    REQUIRE(ended.code == 0);
    const Outcome found = f.tiny.outcome(kind + "4");
    CHECK(found.root == expected.root);
    CHECK(found.model == expected.model);
    const std::string run = f.tiny.d / (kind + "4");
    const Json plan = parse_json(read_file(run + "/plan.json"), "the plan");
    const JsonArray& costs = plan.find("zebra")->find("rank_costs")->as_array();
    REQUIRE(costs.size() == 1);  // of two ranks that are alike
    CHECK(costs[0].find("rank")->as_int() == 2);
    const Json line = parse_json(metrics_lines(run).back(), "a line");
    CHECK(line.find("ranks")->as_array()[0].find("role")->as_string() == "attention");
    CHECK(line.find("ranks")->as_array()[3].find("role")->as_string() == "experts");
    const Json& use = *line.find("utilisation");
    for (const char* role : {"attention", "experts"}) {
      CHECK(use.find(role)->as_double() >= 0);
      CHECK(use.find(role)->as_double() <= 1);
    }
  }
}

TEST_CASE("launched ranks: a killed one of either role\\, and others of both go on") {
  const Launched f;
  REQUIRE(f.tiny.run(f.tiny.command(f.train("whole", 150))).code == 0);
  for (const int killed : {1, 3}) {
    const std::string out = "run" + std::to_string(killed), run = f.tiny.d / out;
    const Words words = f.train(out, 150, {"--attention-ranks", "2"}, "zebra");
    Process process(test_launcher(), f.start({{4, {}, words}}));
    REQUIRE(process.wait_until([&] { return has_steps(run, 60); }));
    const pid_t id = process_of(run, killed);
    REQUIRE(id > 0);
    ::kill(id, SIGKILL);
    const Ended ended = process.wait(30);
    INFO("rank " << killed << ": " << ended.err);
    CHECK(ended.code > 0);
    CHECK(ended.code != 75);
    const auto& [ranks, attention] = killed == 1 ? std::pair(3, "1") : std::pair(3, "2");
    CHECK(f.run_on(ranks, f.train(out, 150, {"--attention-ranks", attention}, "zebra")).code == 0);
    CHECK(f.tiny.outcome(out).root == f.tiny.outcome("whole").root);
    CHECK(f.tiny.outcome(out).model == f.tiny.outcome("whole").model);
  }
}

/// The numbers of the file operations of a run in files of its states, from 1.
std::vector<int64_t> calls_of_saves(const std::string& log) {
  std::vector<int64_t> numbers;
  std::ifstream lines(log);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find("/state/.tmp-step-") != line.npos) numbers.push_back(number);
  }
  return numbers;
}

// Each rank is killed at operations of its own, from the first file that it makes for a state to the
// rename that publishes it.
TEST_CASE("launched ranks: kills in the middle of a save leave the older states whole") {
  const Launched f;
  const Words saving{"--keep", "3"};
  const auto train = [&](const std::string& out, const std::string& mode) {
    Words words = f.train(out, 6, saving, mode);
    *std::next(std::find(words.begin(), words.end(), "--save-every")) = "1";
    return words;
  };
  REQUIRE(f.tiny.run(f.tiny.command(train("whole", "dp"))).code == 0);
  const Outcome expected = f.tiny.outcome("whole");
  for (const std::string mode : {"dp", "ep"}) {
    for (const int killed : {0, 1}) {
      const std::string out = mode + std::to_string(killed), run = f.tiny.d / out;
      const auto started = [&](const std::string& variable, const std::string& value) {
        const Words told{"-x", variable + "=" + value};
        const Words words = train(out, mode);
        return f.start(
            {{1, killed == 0 ? told : Words{}, words}, {1, killed == 1 ? told : Words{}, words}});
      };
      REQUIRE(
          hearth::test::run(test_launcher(), started("HEARTH_CALL_LOG", f.tiny.d / out + ".log"))
              .code == 0);
      const std::vector<int64_t> calls = calls_of_saves(f.tiny.d / out + ".log");
      REQUIRE(calls.size() > 30);
      std::filesystem::remove_all(run);
      for (const size_t part : {2, 5, 7, 8}) {  // of ten
        const int64_t at = calls[calls.size() * part / 10];
        INFO(mode << ": rank " << killed << " is killed at call " << at);
        const Ended ended =
            hearth::test::run(test_launcher(), started("HEARTH_KILL_AT", std::to_string(at)));
        CHECK(ended.code > 0);
        CHECK(f.tiny.wrong_between(out, 3) == "");
        const std::string one = mode == "dp" ? "ep" : "dp";  // goes on as something else
        CHECK(f.run_on(part == 5 ? 4 : 2, train(out, part == 2 ? one : mode)).code == 0);
        CHECK(f.tiny.outcome(out).root == expected.root);
        CHECK(f.tiny.outcome(out).model == expected.model);
        std::filesystem::remove_all(run);
      }
    }
  }
}

TEST_CASE("launched ranks: without a shared disk\\, all of it lies below rank 0's --out") {
  const Launched f;
  REQUIRE(f.tiny.run(f.tiny.command(f.train("whole", 6))).code == 0);
  const Outcome expected = f.tiny.outcome("whole");
  for (const std::string name : {"a", "b"}) std::filesystem::create_directories(f.tiny.d / name);
  // Ranks with directories of their own, in which --out has the same name.
  const auto train = [&](int64_t steps, const std::string& mode) {
    Words words = f.train("run", steps, {}, mode);
    *std::find(words.begin(), words.end(), f.tiny.d / "run") = "run";
    *std::next(std::find(words.begin(), words.end(), "--save-every")) = "1";
    return words;
  };
  for (const std::string mode : {"dp", "ep"}) {
    const Words words = train(6, mode);
    const auto started = [&](const std::string& other) {
      return f.start({{1, {"-wdir", f.tiny.d / "a"}, words},
                      {1, {"-wdir", f.tiny.d / other}, words},
                      {2, {"-wdir", f.tiny.d / "b"}, words}});
    };
    for (const std::string other : {"b", "a"}) {  // rank 1 reaches rank 0's in the second run
      const Ended ended = run(test_launcher(), started(other));
      INFO(mode << " " << other << ": " << ended.err);
      REQUIRE(ended.code == 0);
      CHECK(list_directory(f.tiny.d / "b").empty());
      const Outcome found = f.tiny.outcome("a/run");
      CHECK(found.root == expected.root);
      CHECK(found.model == expected.model);
      const std::vector<int64_t> states = steps_of_states(f.tiny.d / "a/run");
      REQUIRE(states.size() == 2);
      for (const int64_t step : states) {
        const std::string state = f.tiny.d / "a/run/state/" + state_directory_name(step);
        CHECK(verify_state(state).step == step);
        const bool has_parts =
            file_info(state + "/moment1.rank-1.safetensors").kind != FileKind::none;
        CHECK(has_parts == (other == "a"));
        CHECK(file_info(state + "/moment1.rank-2.safetensors").kind == FileKind::none);
      }
      for (const std::string& name : list_directory(f.tiny.d / "a/run")) {
        CHECK((!name.starts_with(".") || name == ".lock"));
      }
      std::filesystem::remove_all(f.tiny.d / "a/run");
    }
  }
}

TEST_CASE("launched ranks: at a resume each reads its own part of the state\\, if it finds that") {
  const Launched f;
  REQUIRE(f.tiny.run(f.tiny.command(f.train("whole", 6))).code == 0);
  const Outcome expected = f.tiny.outcome("whole");
  for (const std::string name : {"a", "b"}) std::filesystem::create_directories(f.tiny.d / name);
  const std::string run = f.tiny.d / "a/run";
  Words words = f.train("run", 6, {"--keep", "9"});
  *std::find(words.begin(), words.end(), f.tiny.d / "run") = "run";
  *std::next(std::find(words.begin(), words.end(), "--save-every")) = "1";
  // The last two ranks are in another directory, where --out is not there, or in the same.
  const auto started = [&](int ranks, const std::string& others) {
    std::vector<Launched::Group> groups{{2, {"-wdir", f.tiny.d / others}, words}};
    if (ranks > 2) groups.insert(groups.begin(), {ranks - 2, {"-wdir", f.tiny.d / "a"}, words});
    return hearth::test::run(test_launcher(), f.start(groups));
  };
  /// As if the run had been killed behind this step.
  const auto cut_behind = [&](int64_t step) {
    std::filesystem::remove_all(run + "/model");
    for (const int64_t of : steps_of_states(run)) {
      if (of > step) std::filesystem::remove_all(run + "/state/" + state_directory_name(of));
    }
  };
  const auto check = [&](int ranks, const std::string& others, const std::string& readers) {
    const Ended ended = started(ranks, others);
    INFO(ranks << " ranks, " << others << ": " << ended.err);
    REQUIRE(ended.code == 0);
    CHECK(last_event(run, "resume").find("readers")->dump() == readers);
    CHECK(f.tiny.outcome("a/run").root == expected.root);
    CHECK(f.tiny.outcome("a/run").model == expected.model);
  };
  REQUIRE(started(4, "a").code == 0);
  cut_behind(3);
  check(4, "a", "[0, 1, 2, 3]");
  cut_behind(3);
  check(2, "a", "[0, 1]");
  cut_behind(2);
  check(4, "b", "[0, 1]");
  cut_behind(4);  // of which ranks 0 and 1 wrote parts
  check(4, "a", "[0, 1, 2, 3]");
  // What only rank 1 reads is damaged: all end alike, with the file. An older state is used.
  cut_behind(2);
  const std::string file = run + "/state/step-00000002/moment1.rank-1.safetensors";
  const std::string whole = read_file(file);
  const auto overwrite = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
  };
  std::string bad = whole;
  bad.back() ^= 1;
  overwrite(bad);
  const std::string older = run + "/state/step-00000001";
  std::filesystem::rename(older, f.tiny.d / "older");
  const Ended ended = started(4, "a");
  INFO(ended.err);
  CHECK(ended.code == 4);
  CHECK(own_lines(ended).size() == 1);  // that no state is left, behind what is wrong with the file
  CHECK(ended.err.find(file.substr(file.find("run/state")) + ": is damaged") != std::string::npos);
  std::filesystem::rename(f.tiny.d / "older", older);
  check(4, "a", "[0, 1, 2, 3]");
  CHECK(last_event(run, "resume").find("step")->as_int() == 1);
}

TEST_CASE("launched ranks: a stopped one is noticed") {
  const Launched f;
  const std::string run = f.tiny.d / "run";
  const Words words = f.train("run", 100000, {"--rank-limit", "1s"});
  Process process(test_launcher(), f.start({{4, {}, words}}));
  REQUIRE(process.wait_until([&] { return has_steps(run, 60); }));
  const pid_t id = process_of(run, 2);
  REQUIRE(id > 0);
  // Shorter than the limit: no alarm.
  ::kill(id, SIGSTOP);
  ::usleep(500'000);
  ::kill(id, SIGCONT);
  const size_t done = metrics_lines(run).size();
  REQUIRE(process.wait_until([&] { return has_steps(run, done + 10); }));
  const double stopped = now();
  ::kill(id, SIGSTOP);
  const Ended ended = process.wait(60);
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK(now() - stopped < 1 + 10);
  const Words lines = own_lines(ended);
  CHECK(!lines.empty());
  CHECK(lines.size() <= 3);  // of the survivors
  for (const std::string& line : lines) {
    CHECK(line.starts_with("hearth: rank 2 (host "));
    CHECK(line.find(") gave no sign of life for 1") != line.npos);
    CHECK(line.find(" of step ") != line.npos);
  }
  const Json event = last_event(run, "rank_failed");
  REQUIRE(event.is_object());
  CHECK(event.find("rank")->as_int() == 2);
  CHECK(event.find("why")->as_string() == "silent");
  CHECK(event.find("step")->as_int() >= static_cast<int64_t>(done));
  CHECK(!event.find("host")->as_string().empty());
  CHECK(event.find("collective")->as_string().find(' ') != std::string::npos);
}

TEST_CASE("launched ranks: one that stops before the start is noticed", "[.long]") {
  const Launched f;
  const Words words = f.train("run", 2);
  const Words stops{"-x", "HEARTH_PLANTED=rank-stops-at-start"};
  Process process(test_launcher(), f.start({{2, {}, words}, {1, stops, words}, {1, {}, words}}));
  const Ended ended = process.wait(60);
  INFO(ended.err);
  CHECK(ended.code == 6);
  const Words lines = own_lines(ended);
  CHECK(!lines.empty());
  for (const std::string& line : lines) {
    CHECK(line.starts_with("hearth: rank 2 (host "));
    CHECK(line.find(") gave no sign of life for 2") != line.npos);
  }
  CHECK(process_of(f.tiny.d / "run", 2) == 0);
  CHECK(file_info(f.tiny.d / "run").kind == FileKind::none);
}

// As srun does, where Open MPI's launcher ends the others by itself.
TEST_CASE("launched ranks: all that are left name the one that died") {
  const Launched f;
  const Words recovery{"--enable-recovery"};
  Start probe;
  probe.words = {"--enable-recovery", "--version"};
  if (run(test_launcher(), probe).code != 0) SKIP("the launcher cannot let ranks live");
  const std::string run = f.tiny.d / "run";
  Process process(test_launcher(), f.start({{4, recovery, f.train("run", 100000)}}));
  REQUIRE(process.wait_until([&] { return has_steps(run, 60); }));
  const pid_t id = process_of(run, 2);
  REQUIRE(id > 0);
  const double killed = now();
  ::kill(id, SIGKILL);
  const Ended ended = process.wait(60);
  INFO(ended.err);
  CHECK(now() - killed < 5 + 10);  // of the launcher itself, some
  const Words lines = own_lines(ended);
  CHECK(lines.size() == 3);
  for (const std::string& line : lines) {
    CHECK(line.starts_with("hearth: rank 2 (host "));
    CHECK(line.find(") died, in ") != line.npos);
  }
  const Json event = last_event(run, "rank_failed");
  REQUIRE(event.is_object());
  CHECK(event.find("rank")->as_int() == 2);
  CHECK(event.find("why")->as_string() == "died");
}

TEST_CASE("launched ranks: one that is stopped most of the time is no alarm") {
  const Launched f;
  const std::string run = f.tiny.d / "run";
  Process process(test_launcher(),
                  f.start({{4, {}, f.train("run", 100000, {"--rank-limit", "3s"})}}));
  REQUIRE(process.wait_until([&] { return has_steps(run, 10); }));
  for (const int rank : {1, 0}) {
    const pid_t id = process_of(run, rank);
    REQUIRE(id > 0);
    for (int i = 0; i < 4; ++i) {  // half of the limit, and awake for less
      ::kill(id, SIGSTOP);
      ::usleep(1'500'000);
      ::kill(id, SIGCONT);
      ::usleep(200'000);
    }
  }
  const size_t done = metrics_lines(run).size();
  REQUIRE(process.wait_until([&] { return has_steps(run, done + 10); }));
  ::kill(process_of(run, 2), SIGUSR1);
  const Ended ended = process.wait(60);
  INFO(ended.err);
  CHECK(ended.code == 75);
  CHECK(own_lines(ended).empty());
  CHECK(!last_event(run, "rank_failed").is_object());
}

TEST_CASE("launched ranks: what cannot run is said once") {
  const Launched f;
  const auto refused = [&](const std::vector<Launched::Group>& groups, int code,
                           const Words& parts) {
    const Ended ended = run(test_launcher(), f.start(groups));
    INFO(ended.err);
    CHECK(ended.code == code);
    const Words lines = own_lines(ended);
    CHECK(lines.size() == 1);
    for (const std::string& part : parts) CHECK(lines.front().find(part) != std::string::npos);
  };
  const Words good = f.train("run", 2);
  refused({{1, {}, good}, {1, {}, f.train("run", 3)}}, 2,
          {"rank 1 (host ", "another steps", "3, not 2"});
  refused({{1, {}, good}, {1, {}, f.train("run", 2, {"--seed", "5"})}}, 2,
          {"rank 1", "another seed"});
  refused({{2, {}, f.train("run", 2, {"--seed", "x"})}}, 2, {"hearth: --seed: "});
  refused({{1, {}, good}, {1, {}, f.train("run", 2, {"--seed", "x"})}}, 2,
          {"rank 1 (host ", "): --seed: "});
  refused({{3, {}, good}}, 2, {"3 processes", "1, 2 and 4 would do"});
  refused({{2, {}, f.train("run", 2, {"--thread-ranks", "2"})}}, 2,
          {"--thread-ranks 2", "2 processes"});
  CHECK(file_info(f.tiny.d / "run").kind == FileKind::none);

  // The same names, and another content.
  for (const std::string name : {"a", "b"}) {
    std::filesystem::create_directories(f.tiny.d / name);
    std::ofstream(f.tiny.d / (name + "/rows.jsonl"))
        << R"({"text": "of directory )" << name << "\"}\n";
  }
  Words there = good;
  *std::find(there.begin(), there.end(), f.tiny.d / "rows.jsonl") = "rows.jsonl";
  refused({{1, {"-wdir", f.tiny.d / "a"}, there}, {1, {"-wdir", f.tiny.d / "b"}, there}}, 2,
          {"rank 1 (host ", "another data"});
  CHECK(file_info(f.tiny.d / "run").kind == FileKind::none);

  // Of one rank: its own code, and its name.
  Words broken = there;
  refused({{1, {"-wdir", f.tiny.d / "a"}, there}, {1, {"-wdir", f.tiny.d / "model"}, broken}}, 3,
          {"rank 1 (host ", "rows.jsonl"});

  // What ranks may have for themselves.
  Words other = f.train("apart", 2, {"--cpu-memory", "4G"});
  *std::find(other.begin(), other.end(), "--quiet") = "--verbose";
  *std::next(std::find(other.begin(), other.end(), "--threads")) = "2";
  const Ended apart = run(test_launcher(), f.start({{1, {}, f.train("apart", 2)}, {1, {}, other}}));
  INFO(apart.err);
  CHECK(apart.code == 0);
}

}  // namespace hearth::test

#endif
