// Ranks that save side by side, beside the next steps: what is published is the step's state, whoever
// writes what, and a rank that cannot write costs a save, not the run.
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/sanitized.h"
#include "state/state_search.h"
#include "support/path_calls.h"
#include "support/planted.h"
#include "train/export.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

class RankSaves : public RanksFixture {
 public:
  /// Four ranks, a save and a digest each step.
  TrainConfig saving(const std::string& out, const TrainedWith& with = kFull) const {
    TrainConfig config = config_of(with, out, 4, 4);
    config.steps = 4;
    config.save_every.steps = 1;
    config.keep = 20;
    config.digest_every = 1;
    return config;
  }
  /// Roots by step, as metrics.jsonl has them.
  std::vector<std::string> roots_of_metrics(const std::string& out) const {
    std::vector<std::string> roots;
    for (const std::string& line : lines(out + "/metrics.jsonl")) {
      roots.push_back(parse_json(line, "metrics").find("state_digest")->as_string());
    }
    return roots;
  }
  std::string state(const std::string& out, int64_t step) const {
    return dir / (out + "/state/" + state_directory_name(step));
  }
  /// Names of files of a state.
  std::set<std::string> files(const std::string& out, int64_t step) const {
    const std::vector<std::string> names = list_directory(state(out, step));
    return {names.begin(), names.end()};
  }
  void check_states(const std::string& out) const {
    const std::vector<std::string> roots = roots_of_metrics(out);
    REQUIRE(roots.size() == 4);
    for (int64_t step = 1; step <= 4; ++step) {
      CHECK(verify_state(state(out, step)).digest.root.hex() ==
            roots[static_cast<size_t>(step - 1)]);
    }
  }
};

/// Writes of some files of states take so long that a save lasts longer than a step.
class SlowFiles : public PathCalls {
 public:
  explicit SlowFiles(const std::string& part) {
    on_write = [part](const std::string& path) {
      if (path.find("/state/.tmp-step-") != path.npos && path.find(part) != path.npos) {
        std::this_thread::sleep_for(std::chrono::microseconds(kSanitized ? 4000 : 400));
      }
      return 0;
    };
  }
};

TEST_CASE("rank saves: every state is that of its step\\, whichever rank is slow") {
  RankSaves f;
  for (const TrainedWith& with : {kFull, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    TrainConfig one = f.saving("one" + with.family, with);
    one.thread_ranks = 1;
    one.parallel = "";
    REQUIRE(f.run(one) == ExitCode::done);
    const std::vector<std::string> expected = f.roots_of_metrics("one" + with.family);
    for (const std::string slow : {".rank-0", ".rank-2", "moment2"}) {
      if (kSanitized && (slow == ".rank-2") != (with.family == "tied")) continue;
      INFO(with.family << ", slow: " << slow);
      const SlowFiles calls(slow);
      const FileCallsOverride guard(const_cast<SlowFiles&>(calls));
      const TrainConfig config = f.saving("run", with);
      REQUIRE(f.run(config) == ExitCode::done);
      f.check_states("run");
      CHECK(f.roots_of_metrics("run") == expected);
      CHECK(f.result("run") == f.result("one" + with.family));
      const std::set<std::string> files = f.files("run", 4);
      for (const std::string name : {"weights", "moment1", "moment2"}) {
        CHECK_FALSE(files.contains(name + ".safetensors"));
        CHECK(files.contains(name + ".rank-0.safetensors"));
        CHECK(files.contains(name + ".rank-3.safetensors"));
      }
      remove_tree(config.out);
    }
  }
}

TEST_CASE("rank saves: updates of ranks that did not wait would be seen") {
  RankSaves f;
  // The save of step 1 is held at rank 2's second tensor until step 2, which does not wait, is over.
  std::atomic<int64_t> step{0};
  std::atomic<int> writes{0};
  PathCalls calls;
  calls.on_write = [&](const std::string& path) {
    if (path.find("/.tmp-step-00000001/") != path.npos && path.find(".rank-2.") != path.npos &&
        ++writes > 8) {
      for (int i = 0; i < 30000 && step < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return 0;
  };
  TrainConfig config = f.saving("run");
  config.save_every.steps = 100;
  config.save_every.seconds = 0;  // not due again before the first has ended
  config.warmup = 0;
  config.steps = 2;
  RecordingReporter reporter;
  reporter.on_step = [&](const StepMetrics& m) { step = m.step; };
  const FileCallsOverride guard(calls);
  const PlantedFault fault("update-does-not-wait");
  std::string what;  // of rank 2, or of rank 0 if that was overtaken, too
  try {
    train(config, reporter);
  } catch (const std::exception& error) {
    what = error.what();
  }
  CHECK(what.find("changed while it was saved") != std::string::npos);
}

TEST_CASE("rank saves: ranks that do not share rank 0's disk have it read what they own") {
  RankSaves f;
  const PlantedFault apart("ranks-share-no-disk");
  for (const TrainedWith& with : {kFull, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    const SlowFiles calls("weights");
    const FileCallsOverride guard(const_cast<SlowFiles&>(calls));
    const TrainConfig config = f.saving("run", with);
    REQUIRE(f.run(config) == ExitCode::done);
    f.check_states("run");
    CHECK(f.files("run", 4) == std::set<std::string>{"manifest.json", "moment1.safetensors",
                                                     "moment2.safetensors", "progress.safetensors",
                                                     "routing.safetensors", "weights.safetensors"});
    TrainConfig one = f.saving("one", with);
    one.thread_ranks = 1;
    one.parallel = "";
    REQUIRE(f.run(one) == ExitCode::done);
    CHECK(f.roots_of_metrics("run") == f.roots_of_metrics("one"));
    CHECK(f.result("run") == f.result("one"));
    remove_tree(config.out);
    remove_tree(one.out);
  }
  f.check_path(kLora, {{4}, {1}, {2, "ep", 2}, {4, "dp"}});
}

TEST_CASE("rank saves: states go from any number of ranks to any other") {
  RankSaves f;
  const auto path = [&](const TrainedWith& with, const std::vector<RanksFixture::Way>& ways) {
    TrainConfig whole = f.config_of(with, "whole", 8, 1);
    whole.steps = std::ssize(ways);
    REQUIRE(f.run(whole) == ExitCode::done);
    TrainConfig parts = whole;
    parts.out = f.dir / "parts";
    for (size_t i = 0; i < ways.size(); ++i) {
      parts.thread_ranks = ways[i].ranks;
      parts.parallel = ways[i].ranks > 1 ? ways[i].mode : "";
      parts.expert_ranks = ways[i].ranks > 1 && ways[i].mode == "ep" ? ways[i].sharing : 0;
      const bool last = i + 1 == ways.size();
      INFO("step " << i + 1 << " on " << ways[i].ranks << " ranks " << ways[i].mode);
      REQUIRE((last ? f.run(parts) : f.run_until(parts, static_cast<int64_t>(i) + 1)) ==
              (last ? ExitCode::done : ExitCode::stopped));
    }
    CHECK(f.root("parts") == f.root("whole"));
    CHECK(f.result("parts") == f.result("whole"));
    for (const char* out : {"whole", "parts"}) remove_tree(f.dir / out);
  };
  path(kFull, {{8}, {1}, {4}, {2}, {8}, {2}, {1}, {4, "ep", 2}, {8, "ep", 4}, {2, "ep", 2}, {8}});
  if (!kSanitized) path({"tied", {}, ComputeChoice::bf16}, {{1}, {8}, {4}, {1}, {2}});
}

TEST_CASE("rank saves: a rank whose disk is full costs a save\\, not the run") {
  RankSaves f;
  std::atomic<int64_t> full{2};  // the step whose save fails
  PathCalls calls;
  calls.on_write = [&](const std::string& path) {
    const std::string save = "/.tmp-" + state_directory_name(full) + "/moment1.rank-1.";
    return path.find(save) != path.npos ? -ENOSPC : 0;
  };
  const FileCallsOverride guard(calls);
  RecordingReporter reporter;
  REQUIRE(train(f.saving("run"), reporter) == ExitCode::done);
  REQUIRE(reporter.warnings.size() == 1);
  INFO(reporter.warnings[0]);
  CHECK(reporter.warnings[0].find("the state of step 2 could not be saved") != std::string::npos);
  CHECK(reporter.warnings[0].find("rank 1 (host ") != std::string::npos);
  CHECK(reporter.warnings[0].find("moment1.rank-1.safetensors") != std::string::npos);
  CHECK(list_directory(f.dir / "run/state") ==
        std::vector<std::string>{"step-00000001", "step-00000003", "step-00000004"});
  // The last one ends the run with 4, and the same command ends it well.
  full = 4;
  const TrainConfig config = f.saving("last");
  const Raised raised = raised_by([&] { f.run(config); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("moment1.rank-1.safetensors"));
  CHECK(raised.message.starts_with("rank 1 (host "));
  CHECK(raised.message.find("rank ", 1) == std::string::npos);
  CHECK(list_directory(f.dir / "last/state") ==
        std::vector<std::string>{"step-00000001", "step-00000002", "step-00000003"});
  full = 0;
  CHECK(f.run(config) == ExitCode::done);
  CHECK(f.root("last") == f.root("run"));
}

TEST_CASE(
    "rank saves: a damaged or missing file of a rank is named\\, and an older state is used") {
  RankSaves f;
  TrainConfig config = f.saving("run");
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  const std::string of_three = f.state("run", 3) + "/moment2.rank-2.safetensors";
  std::string content = read_file(of_three);
  content.back() ^= 1;
  RankSaves::write(of_three, content);
  remove_file(f.state("run", 2) + "/weights.rank-1.safetensors");
  for (const int64_t ranks : {2, 4}) {  // the second time nothing is left to do
    config.thread_ranks = ranks;
    RecordingReporter reporter;
    REQUIRE(train(config, reporter) == ExitCode::done);
    if (ranks == 4) break;
    REQUIRE(reporter.warnings.size() == 2);
    CHECK(reporter.warnings[0].find(of_three + ": ") != std::string::npos);
    CHECK(reporter.warnings[1].find("step-00000002/weights.rank-1.safetensors: ") !=
          std::string::npos);
    CHECK(reporter.steps.size() == 3);  // from step 1
  }
  REQUIRE(f.run(f.saving("whole")) == ExitCode::done);
  CHECK(f.root("run") == f.root("whole"));
  CHECK(f.result("run") == f.result("whole"));
  // Not one whole: nothing is touched.
  TrainConfig stopped = f.saving("stopped");
  stopped.save_every = {};
  REQUIRE(f.run_until(stopped, 1) == ExitCode::stopped);
  remove_file(f.state("stopped", 1) + "/moment1.rank-3.safetensors");
  const Raised raised = raised_by([&] { f.run(stopped); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("none of it is whole"));
}

/// The threads that read files of the state of step 2 after its manifest, by file.
class FileReaders : public PathCalls {
 public:
  FileReaders() {
    on_read = [this](const std::string& path) {
      const size_t at = path.find(kState);
      if (at == path.npos || path.ends_with("manifest.json")) return 0;
      const std::string file = path.substr(at + kState.size());
      const std::lock_guard lock(mutex_);
      by_file[file].insert(std::this_thread::get_id());
      return fails && fails(file) ? -EIO : 0;
    };
  }
  std::function<bool(const std::string& file)> fails = {};
  std::map<std::string, std::set<std::thread::id>> by_file;
  /// Of all files of weights and moments.
  std::set<std::thread::id> of_parts() const {
    std::set<std::thread::id> all;
    for (const auto& [file, threads] : by_file) {
      if (file.starts_with("weights") || file.starts_with("moment")) {
        all.insert(threads.begin(), threads.end());
      }
    }
    return all;
  }

 private:
  const std::string kState = "/state/step-00000002/";
  std::mutex mutex_;
};

/// The ranks that the last resume names as readers, as JSON.
std::string readers_in(const RankSaves& f, const std::string& run) {
  std::string readers;
  for (const std::string& line : f.lines(run + "/journal.jsonl")) {
    const Json event = parse_json(line, "journal");
    if (event.find("event")->as_string() != "resume") continue;
    const Json* const all = event.find("readers");
    readers = all == nullptr ? "none" : all->dump();
  }
  return readers;
}

TEST_CASE("rank saves: at a resume each rank reads its own part") {
  RankSaves f;
  REQUIRE(f.run(f.saving("whole")) == ExitCode::done);
  const auto resumed = [&](int64_t from, int64_t ranks, FileReaders& calls) {
    TrainConfig config = f.saving("run");
    const auto set_ranks = [&](int64_t n) {
      config.thread_ranks = n;
      config.parallel = n > 1 ? "dp" : "";
    };
    set_ranks(from);
    REQUIRE(f.run_until(config, 2) == ExitCode::stopped);
    set_ranks(ranks);
    {
      const FileCallsOverride guard(calls);
      REQUIRE(f.run(config) == ExitCode::done);
    }
    CHECK(f.root("run") == f.root("whole"));
    CHECK(f.result("run") == f.result("whole"));
    const std::string readers = readers_in(f, "run");
    remove_tree(config.out);
    return readers;
  };
  {
    FileReaders calls;
    CHECK(resumed(4, 4, calls) == "[0, 1, 2, 3]");
    std::set<std::thread::id> owners;
    for (const std::string rank : {"0", "1", "2", "3"}) {
      const std::string part = ".rank-" + rank + ".safetensors";
      const std::set<std::thread::id>& readers = calls.by_file["moment1" + part];
      CHECK(readers.size() == 1);
      CHECK(readers == calls.by_file["weights" + part]);
      owners.insert(readers.begin(), readers.end());
    }
    CHECK(owners.size() == 4);
    CHECK(calls.by_file["progress.safetensors"].size() == 1);
  }
  for (const auto& [from, ranks] : {std::pair<int64_t, int64_t>{1, 4}, {4, 2}}) {
    FileReaders calls;
    CHECK(resumed(from, ranks, calls) == (ranks == 4 ? "[0, 1, 2, 3]" : "[0, 1]"));
    CHECK(std::ssize(calls.of_parts()) == ranks);
  }
  FileReaders alone;
  CHECK(resumed(4, 1, alone) == "none");
  CHECK(alone.of_parts().size() == 1);
  const PlantedFault apart("ranks-share-no-disk");
  FileReaders sent;
  CHECK(resumed(4, 4, sent) == "[0]");
  CHECK(sent.of_parts().size() == 1);
}

TEST_CASE("rank saves: what only another rank reads ends all ranks alike where it is damaged") {
  RankSaves f;
  TrainConfig config = f.saving("run");
  REQUIRE(f.run_until(config, 2) == ExitCode::stopped);
  const std::string named = f.state("run", 2), file = named + "/moment2.rank-1.safetensors";
  TrainConfig other = f.saving("other");
  other.resume = ResumeMode::from_directory;
  other.resume_from = named;
  const auto refused = [&](const std::string& part) {
    const Raised raised = raised_by([&] { f.run(other); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says(file + ": " + part));
    CHECK(file_info(other.out + "/state").kind == FileKind::none);
  };
  const std::string whole = read_file(file);
  std::string bad = whole;
  bad.back() ^= 1;
  RankSaves::write(file, bad);
  refused("is damaged between bytes 0 and");
  RankSaves::write(file, whole);
  {  // which rank 0 can read
    FileReaders calls;
    const std::thread::id own = std::this_thread::get_id();
    calls.fails = [&](const std::string& name) {
      return name == "moment2.rank-1.safetensors" && std::this_thread::get_id() != own;
    };
    const FileCallsOverride guard(calls);
    refused("rank 1 (host ");
  }
  REQUIRE(f.run(f.saving("whole")) == ExitCode::done);
  REQUIRE(f.run(other) == ExitCode::done);
  CHECK(f.root("other") == f.root("whole"));
  // Of the same run, an older state is used.
  RankSaves::write(file, bad);
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  REQUIRE(reporter.warnings.size() == 1);
  CHECK(reporter.warnings[0].find(file + ": ") != std::string::npos);
  CHECK(f.root("run") == f.root("whole"));
}

TEST_CASE("rank saves: a state of several ranks is exported as one of one") {
  RankSaves f;
  for (const TrainedWith& with : {kFull, kLora}) {
    const std::string out = "run" + with.family;
    const TrainConfig run = f.saving(out, with);
    REQUIRE(f.run(run) == ExitCode::done);
    ExportConfig config;
    config.model = run.model;
    config.from_state = f.state(out, 4);
    config.out = f.dir / (out + "-exported");
    RecordingReporter reporter;
    export_state(config, reporter);
    const bool full = !with.lora_dropout;
    const std::string file = full ? "/model.safetensors" : "/adapter_model.safetensors";
    CHECK(read_file(config.out + file) == f.result(out));
  }
}

TEST_CASE("rank saves: the best state is loaded from files of all ranks") {
  RankSaves f;
  TrainConfig config = f.saving("run");
  config.load_best = true;
  config.eval_every.steps = 1;
  config.eval_data = config.data;
  config.lr = 3e-2;
  TrainConfig one = config;
  one.out = f.dir / "one";
  one.thread_ranks = 1;
  one.parallel = "";
  REQUIRE(f.run(one) == ExitCode::done);
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.result("run") == f.result("one"));
}

}  // namespace
}  // namespace hearth::test
