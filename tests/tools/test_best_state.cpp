// --keep-best, --early-stopping and --load-best, with the program.
#include <algorithm>
#include <cmath>

#include "base/sanitized.h"
#include "state/state_directory.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

/// Rows that a run learns by heart, and others to evaluate: its loss there falls, then rises.
struct Overfitting : Workplace {
  Overfitting() {
    std::string rows;
    for (int i = 0; i < 6; ++i) {
      rows += R"({"text": "row number )" + std::to_string(i) + " and some" +
              std::string(2 * i, 'y') + "\"}\n";
    }
    write(d / "eval.jsonl", rows);
  }

  std::vector<std::string> words(const std::string& out, const std::vector<std::string>& more,
                                 const std::string& steps = "12") const {
    std::vector<std::string> all = train(out, {"--eval-data", d / "eval.jsonl", "--warmup", "1",
                                               "--lr-schedule", "constant", "--quiet"});
    *(std::find(all.begin(), all.end(), "--lr") + 1) = "3e-2";
    *(std::find(all.begin(), all.end(), "--steps") + 1) = steps;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void must(const std::vector<std::string>& all) const {
    const ProgramResult r = run(all);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
  }
  /// Evaluated steps, the best first, and their losses, as metrics.jsonl has them.
  std::vector<std::pair<double, int64_t>> ranked(const std::string& out) const {
    std::vector<std::pair<double, int64_t>> all;
    for (const Json& line : lines_of(d / (out + "/metrics.jsonl"))) {
      const Json* loss = line.find("eval_loss");
      if (loss != nullptr) all.emplace_back(loss->as_double(), line.find("step")->as_int());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<int64_t> states(const std::string& out) const {
    std::vector<int64_t> steps;
    for (const auto& entry : fs::directory_iterator(d / (out + "/state"))) {
      const auto step = step_of_state_directory(entry.path());
      REQUIRE(step);
      steps.push_back(*step);
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }
  /// The last event of a name; null if there is none.
  Json event(const std::string& out, const std::string& name) const {
    Json found;
    for (const Json& line : lines_of(d / (out + "/journal.jsonl"))) {
      if (line.find("event")->as_string() == name) found = line;
    }
    return found;
  }
  std::string weights(const std::string& directory) const {
    return content(d / (directory + "/model.safetensors"));
  }
};

}  // namespace

TEST_CASE("keep-best: the N best states stay beside the newest, whatever --save-every says") {
  const Overfitting w;
  for (const std::string& every : {std::string("0"), std::string("5")}) {
    const std::string out = "run" + every;
    w.must(w.words(
        out, {"--eval-every", "1", "--keep-best", "2", "--keep", "1", "--save-every", every}));
    const auto ranked = w.ranked(out);
    REQUIRE(ranked.size() == 12);
    std::vector<int64_t> expected{ranked[0].second, ranked[1].second, 12};
    REQUIRE(ranked[0].second != 12);
    REQUIRE(ranked[1].second != 12);
    std::sort(expected.begin(), expected.end());
    CHECK(w.states(out) == expected);
    const Json finished = w.event(out, "finished");
    CHECK(finished.find("best")->find("step")->as_int() == ranked[0].second);
    CHECK(finished.find("best")->find("eval_loss")->as_double() == ranked[0].first);
  }
}

TEST_CASE("load-best: the result is what export makes of the best state, bit for bit") {
  const Overfitting w;
  for (const std::string& method : {std::string("full"), std::string("lora")}) {
    INFO(method);
    const std::string out = "run-" + method;
    std::vector<std::string> words =
        w.words(out, {"--eval-every", "2", "--load-best", "--method", method, "--keep", "1"});
    if (method == "lora") *(std::find(words.begin(), words.end(), "--lr") + 1) = "5e-2";
    w.must(words);
    const int64_t best = w.ranked(out)[0].second;
    REQUIRE(best < 12);
    const std::string result = method == "full" ? "model" : "adapter";
    const auto made = files_below(w.d / (out + "/" + result));
    const std::string state = w.d / (out + "/state/" + state_directory_name(best));
    w.must({"export", "--from-state", state, "--out", w.d / (out + "-best")});
    CHECK(files_below(w.d / (out + "-best")) == made);
    const std::string last = w.d / (out + "/state/" + state_directory_name(12));
    w.must({"export", "--from-state", last, "--out", w.d / (out + "-last")});
    CHECK(files_below(w.d / (out + "-last")) != made);
    const Json verdict = w.event(out, "verdict");
    // A sanitizer takes memory that no plan counts, which is an alarm.
    CHECK((kSanitized || verdict.find("verdict")->as_string() == "ok"));
    CHECK(verdict.find("evaluation")->find("result_step")->as_int() == best);
    // The result is made again, with the same bits.
    fs::remove_all(w.d / (out + "/" + result));
    w.must(words);
    CHECK(files_below(w.d / (out + "/" + result)) == made);
  }
}

TEST_CASE("early-stopping: ends at the N-th evaluation in a row without a new best") {
  const Overfitting w;
  const std::vector<std::string> more{"--eval-every",     "1", "--eval-at-start",
                                      "--early-stopping", "3", "--load-best"};
  w.must(w.words("run", more, "40"));
  const auto ranked = w.ranked("run");
  const int64_t best = ranked[0].second, last = best + 3;
  CHECK(lines_of(w.d / "run/metrics.jsonl").size() == static_cast<size_t>(last));
  CHECK(w.event("run", "early_stop").find("step")->as_int() == last);
  CHECK(w.event("run", "finished").find("step")->as_int() == last);
  CHECK(w.states("run") == std::vector<int64_t>{best, last});

  // It has ended.
  const auto before = files_below(w.d / "run");
  std::vector<std::string> again = w.words("run", more, "40");
  std::erase(again, "--quiet");
  const ProgramResult finished = w.run(again);
  CHECK(finished.exit_code == 0);
  CHECK(finished.err.find("already finished") != std::string::npos);
  CHECK(files_below(w.d / "run") == before);

  // More patience goes on from there.
  std::vector<std::string> patient = more;
  patient[4] = "5";
  w.must(w.words("run", patient, "40"));
  const int64_t later = w.event("run", "early_stop").find("step")->as_int();
  CHECK(later > last);
  CHECK(later == w.ranked("run")[0].second + 5);
}

TEST_CASE("early-stopping: a run without a final state has ended as well") {
  const Overfitting w;
  const std::vector<std::string> more{"--eval-every",  "1",  "--early-stopping", "2",
                                      "--final-state", "off"};
  w.must(w.words("run", more, "40"));
  CHECK_FALSE(w.event("run", "early_stop").is_null());
  const auto before = files_below(w.d / "run");
  w.must(w.words("run", more, "40"));
  CHECK(files_below(w.d / "run") == before);
}

TEST_CASE("early-stopping: an evaluation before step 1 does not count") {
  // At a rate of 0 no evaluation is better than the one before step 1. The first of the run is a best.
  const Overfitting w;
  std::vector<std::string> words =
      w.words("run", {"--eval-every", "1", "--eval-at-start", "--early-stopping", "2"}, "40");
  *(std::find(words.begin(), words.end(), "--lr") + 1) = "0";
  w.must(words);
  CHECK(w.event("run", "early_stop").find("step")->as_int() == 3);
}

TEST_CASE("best states: a resume ranks, keeps and stops as the whole run") {
  const Overfitting w;
  const std::vector<std::string> more{"--eval-every", "1", "--early-stopping", "3", "--load-best",
                                      "--keep",       "1", "--keep-best",      "2"};
  w.must(w.words("whole", more, "40"));
  const int64_t last = w.event("whole", "finished").find("step")->as_int();
  for (int64_t step = 1; step < last; ++step) {
    INFO("stopped after step " << step);
    const std::string out = "stopped" + std::to_string(step);
    // The first start ends after a number of steps by another option, which a resume may change.
    std::vector<std::string> first = more;
    first.insert(first.end(), {"--save-every", "1"});
    w.must(w.words(out, first, std::to_string(step)));
    fs::remove_all(w.d / (out + "/model"));
    std::vector<std::string> second = more;
    second.insert(second.end(), {"--save-every", "1", "--allow-change", "steps"});
    w.must(w.words(out, second, "40"));
    CHECK(w.states(out) == w.states("whole"));
    CHECK(w.weights(out + "/model") == w.weights("whole/model"));
    CHECK(w.event(out, "early_stop").find("step")->as_int() == last);
  }
}

TEST_CASE("load-best: a best state that is damaged or gone") {
  const Overfitting w;
  const std::vector<std::string> more{"--eval-every", "1", "--load-best", "--keep", "1"};
  w.must(w.words("run", more));
  const int64_t best = w.ranked("run")[0].second;
  const std::string state = w.d / ("run/state/" + state_directory_name(best));
  fs::remove_all(w.d / "run/model");
  std::string weights = content(state + "/weights.safetensors");
  weights[weights.size() - 5] ^= 1;
  write(state + "/weights.safetensors", weights);
  const ProgramResult damaged = w.run(w.words("run", more));
  INFO(damaged.err);
  CHECK(damaged.exit_code == 4);
  CHECK(damaged.err.find(state_directory_name(best) + "/weights.safetensors") != std::string::npos);
  CHECK_FALSE(fs::exists(w.d / "run/model"));
  // Gone: the last step is the best that is left.
  fs::remove_all(state);
  const ProgramResult gone = w.run(w.words("run", more));
  CHECK(gone.exit_code == 0);
  CHECK(fs::exists(w.d / "run/model"));
}

TEST_CASE("best states: options that need each other") {
  const Workplace w;
  CHECK(one_line(w.run(w.train("run", {"--keep-best", "2"})), 2, "--keep-best needs --eval-data"));
  CHECK(one_line(w.run(w.train("run", {"--load-best"})), 2, "--load-best needs --eval-data"));
  CHECK(one_line(w.run(w.train("run", {"--val-size", "2", "--early-stopping", "2"})), 2,
                 "--early-stopping needs --eval-every"));
  CHECK(one_line(w.run(w.train("run", {"--metric", "accuracy"})), 2, "expected eval_loss"));
  CHECK_FALSE(fs::exists(w.d / "run"));
}
