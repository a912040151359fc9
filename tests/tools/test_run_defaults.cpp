// Defaults that follow from the data, and runs that are too short, with the program.
#include <algorithm>
#include <cmath>

#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

struct Defaults : Workplace {
  /// `train` without a length, on `rows` short rows, one row per step.
  std::vector<std::string> words(const std::string& out, int rows,
                                 const std::vector<std::string>& more = {}) const {
    const std::string data = d / (std::to_string(rows) + ".jsonl");
    std::string text;
    for (int i = 0; i < rows; ++i) text += R"({"text": "r)" + std::to_string(i % 90) + "\"}\n";
    write(data, text);
    std::vector<std::string> all{"train", "--model", d / "model",    "--data",    data,
                                 "--out", d / out,   "--grad-accum", "1",         "--seq-len",
                                 "64",    "--lr",    "1e-3",         "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProgramResult must(const std::vector<std::string>& all) const {
    ProgramResult r = run(all);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return r;
  }
  std::string recorded(const std::string& out, const std::string& option) const {
    const std::string config = content(d / (out + "/config.yaml"));
    const size_t at = config.find("\n" + option + ": ") + option.size() + 3;
    return config.substr(at, config.find('\n', at) - at);
  }
  std::vector<double> rates(const std::string& out) const {
    std::vector<double> rates;
    for (const Json& line : lines_of(d / (out + "/metrics.jsonl"))) {
      rates.push_back(line.find("lr")->as_double());
    }
    return rates;
  }
};

}  // namespace

TEST_CASE("defaults: packing is on by itself only if at least 100 steps remain, and says why not") {
  const Defaults w;
  // 20 rows of some 4 tokens: two packed sequences an epoch.
  const ProgramResult small = w.must(w.words("small", 20));
  CHECK(small.err.find("--packing: off, as the run would have 6 steps with it, fewer than 100\n") !=
        std::string::npos);
  CHECK(small.err.find("--epochs: 3, as the data have fewer than 10000 rows\n") !=
        std::string::npos);
  CHECK(w.recorded("small", "packing") == "off");
  CHECK(w.recorded("small", "epochs") == "3");
  CHECK(w.rates("small").size() == 60);

  const ProgramResult large = w.must(w.words("large", 20, {"--steps", "100"}));
  CHECK(large.err.find("--packing") == std::string::npos);
  CHECK(large.err.find("--epochs") == std::string::npos);
  CHECK(w.recorded("large", "packing") == "on");

  // What is given by name has no rule.
  const ProgramResult given = w.must(w.words("given", 20, {"--packing", "on", "--epochs", "2"}));
  CHECK(given.err.find("--packing") == std::string::npos);
  CHECK(given.err.find("--epochs") == std::string::npos);
  CHECK(w.recorded("given", "packing") == "on");
  CHECK(w.recorded("given", "epochs") == "2");
  CHECK(w.rates("given").size() == 4);

  // plan says the same.
  std::vector<std::string> plan = w.words("unused", 20);
  plan[0] = "plan";
  CHECK(w.must(plan).err.find("--packing: off") != std::string::npos);
}

TEST_CASE("defaults: one epoch of large data") {
  const Defaults w;
  const auto epochs = [&](int rows) {
    std::vector<std::string> words = w.words("run" + std::to_string(rows), rows);
    words[0] = "plan";
    words.push_back("--json");
    return parse_json(w.must(words).out, "plan").find("data")->find("epochs")->as_double();
  };
  CHECK(std::abs(epochs(9'999) - 3) < 0.01);  // packed sequences fill differently in each
  CHECK(std::abs(epochs(10'000) - 1) < 0.01);
}

TEST_CASE("defaults: the warm-up is at most a tenth of the steps") {
  const Defaults w;
  for (const auto& [steps, warm] : {std::pair<int, int>{2, 0}, {9, 0}, {10, 1}, {33, 1}, {34, 2}}) {
    const std::string n = std::to_string(steps), out = "run" + n;
    w.must(w.words(out, 20, {"--steps", n, "--lr-schedule", "constant"}));
    const std::vector<double> rates = w.rates(out);
    INFO(n);
    CHECK(std::count_if(rates.begin(), rates.end(), [](double r) { return r < 1e-3; }) == warm);
  }
  // By name it is what it was.
  w.must(w.words("named", 20,
                 {"--steps", "9", "--lr-schedule", "constant", "--warmup-ratio", "0.03"}));
  CHECK(w.rates("named")[0] == 0);
}

TEST_CASE("defaults: a run of one step is refused and writes nothing, unless it is asked for") {
  const Defaults w;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--grad-accum", "60"}, {"--grad-accum", "20", "--epochs", "1"}}) {
    std::vector<std::string> words = w.words("run", 20);
    words.erase(std::find(words.begin(), words.end(), "--grad-accum"),
                std::find(words.begin(), words.end(), "--grad-accum") + 2);
    words.insert(words.end(), more.begin(), more.end());
    words.push_back("--quiet");
    CHECK(one_line(w.run(words), 2, "one step"));
    CHECK_FALSE(fs::exists(w.d / "run"));
    words.insert(words.end(), {"--steps", "1"});
    const ProgramResult asked = w.must(words);
    CHECK(asked.err.find("warning: --steps 1: in one step") != std::string::npos);
    // It has ended, and no later start refuses it.
    CHECK(w.run(words).exit_code == 0);
    fs::remove_all(w.d / "run");
  }
  std::vector<std::string> zero = w.words("zero", 20, {"--steps", "3", "--quiet"});
  *(std::find(zero.begin(), zero.end(), "--lr") + 1) = "0";
  const ProgramResult rate = w.must(zero);
  CHECK(rate.err.find("warning: the learning rate is 0 in every step") != std::string::npos);
  // A warm-up of the whole run.
  const auto warmed = [&](const std::string& out, const char* steps) {
    const auto words = w.words(out, 20, {"--steps", "3", "--warmup", steps, "--quiet"});
    return w.must(words).err.find(
               "warning: --warmup: the warm-up is as long as the run of 3 steps, so the learning "
               "rate never reaches --lr") != std::string::npos;
  };
  CHECK(warmed("long", "5"));
  CHECK(warmed("whole", "3"));
  CHECK_FALSE(warmed("short", "2"));
  const auto words = w.words("said", 20, {"--steps", "3", "--warmup", "5"});
  CHECK(w.must(words).err.find("3 steps, 3 of them warm-up") != std::string::npos);
}

TEST_CASE(
    "defaults: a state with other values, as older versions recorded them, resumes to its bits") {
  const Defaults w;
  // What an older version took by default.
  const std::vector<std::string> old{"--packing", "on", "--epochs", "1", "--warmup-ratio", "0.03"};
  const auto words = [&](const std::string& out, std::vector<std::string> more) {
    more.push_back("--quiet");
    return w.words(out, 80, more);
  };
  w.must(words("whole", old));
  const size_t steps = w.rates("whole").size();
  REQUIRE(steps > 2);
  REQUIRE(steps < 10);  // the new rule would have no warm-up
  REQUIRE(w.rates("whole")[0] == 0);
  std::vector<std::string> first = old;
  first.insert(first.end(), {"--save-every", "1", "--keep", "99"});
  w.must(words("run", first));
  for (size_t step = 3; step <= steps; ++step) {
    fs::remove_all(w.d / ("run/state/step-0000000" + std::to_string(step)));
  }
  fs::remove_all(w.d / "run/model");
  w.must(words("run", {}));  // without the options
  CHECK(content(w.d / "run/model/model.safetensors") ==
        content(w.d / "whole/model/model.safetensors"));
  CHECK(w.recorded("run", "packing") == "on");
  CHECK(w.recorded("run", "epochs") == "1");
  CHECK(w.recorded("run", "warmup-ratio") == "0.03");
  CHECK(one_line(w.run(words("run", {"--packing", "off"})), 2, "--packing was 'on'"));
}
