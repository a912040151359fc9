// Lines of metrics.jsonl: the short way of reading them and the one by the tree.
#include "report/step_line.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "base/error.h"
#include "run_files.h"
#include "support/raises.h"

using namespace hearth;
using namespace hearth::test;

namespace {

StepLine read(const std::string& text) {
  StepLine line;
  read_step_line(text, "metrics.jsonl", 7, line);
  return line;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same(const StepLine& a, const StepLine& b) {
  return a.step == b.step && same(a.loss, b.loss) && same(a.aux_loss, b.aux_loss) &&
         same(a.z_loss, b.z_loss) && same(a.grad_norm, b.grad_norm) && same(a.lr, b.lr) &&
         same(a.tokens, b.tokens) && same(a.trained_tokens, b.trained_tokens) &&
         same(a.time_s, b.time_s) && same(a.tokens_per_s, b.tokens_per_s) &&
         same(a.bound_pct, b.bound_pct) && same(a.peak_rss_bytes, b.peak_rss_bytes) &&
         same(a.peak_device_bytes, b.peak_device_bytes) && a.is_finite == b.is_finite &&
         a.busy == b.busy && a.stall_s == b.stall_s && a.cpu_s == b.cpu_s &&
         a.prediction == b.prediction && a.utilisation == b.utilisation && a.limit == b.limit &&
         a.expert_load == b.expert_load && a.residency == b.residency;
}

std::string whole_line() {
  std::string text = metrics_line(12, "0.1");
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("a line as hearth writes it") {
  const StepLine line = read(whole_line());
  CHECK(line.step == 12);
  CHECK(line.loss == 0.1);
  CHECK(line.lr == 0.5);
  CHECK(line.trained_tokens == 60);
  CHECK(line.peak_rss_bytes == 1048576);
  CHECK(line.busy == std::vector<std::pair<std::string, double>>{{"cpu", 0.25}, {"io", 0.125}});
  CHECK(line.stall_s == std::vector<std::pair<std::string, double>>{{"cpu", 0.0625}});
  CHECK(line.cpu_s.size() == 3);
  CHECK(line.limit == "cpu");
  CHECK(line.peak_device_bytes == 0);
  CHECK(line.expert_load == std::vector<double>{1.5, 2.5});
  CHECK(line.is_finite);
  CHECK(std::isnan(line.z_loss));
  StepLine simple;
  CHECK(read_simple_line(whole_line(), simple));  // or the page of a long run takes seconds
  CHECK(same(simple, line));
  CHECK_FALSE(read(R"({"step": 1, "loss": null})").is_finite);
  CHECK(step_of_line(whole_line(), "m", 1) == 12);
  CHECK(step_of_line(R"({"loss":1,"step":5})", "m", 1) == 5);
}

TEST_CASE("what no line of a run is, is refused by file and line") {
  for (const char* text : {"",
                           "{",
                           "[]",
                           "5",
                           "not json",
                           R"({"step": 1, "loss": 01})",
                           R"({"step": 1, "loss": 1.})",
                           R"({"step": 1, "loss": +1})",
                           R"({"step": 1, "loss": .5})",
                           R"({"step": 1, "loss": NaN})",
                           R"({"step": 1, "loss": 1e999})",
                           R"({"step": 1, "loss": 1} x)",
                           R"({"step": 1,})",
                           R"({"step": 0})",
                           R"({"step": -3})",
                           R"({"step": 1.5})",
                           R"({"step": 100000000})",
                           R"({"loss": 1})",
                           R"({"step": "1"})",
                           R"({"step": null})",
                           R"({"step": 1, "loss": "x"})",
                           R"({"step": 1, "loss": [1]})",
                           R"({"step": 1, "busy": 3})",
                           R"({"step": 1, "busy": [3]})",
                           R"({"step": 1, "busy": {"cpu": "x"}})",
                           R"({"step": 1, "stall_s": 3})",
                           R"({"step": 1, "cpu_s": "x"})",
                           R"({"step": 1, "prediction": [0.5]})",
                           R"({"step": 1, "prediction": {"token_hit": "x"}})",
                           R"({"step": 1, "peak_device_bytes": {"a": "x"}})",
                           R"({"step": 1, "peak_device_bytes": [1]})",
                           R"({"step": 1, "expert_load": {"a": 1}})",
                           R"({"step": 1, "expert_load": [[1]]})",
                           R"({"step": 1, "expert_load": "x"})",
                           R"({"step": 1, "residency": {"a": 1}})",
                           R"({"step": 1, "residency": [[1]]})",
                           R"({"step": 1, "residency": 1})",
                           R"({"step": 01})",
                           "{\"step\": 1, \"x\": \"\xff\"}"}) {
    INFO(text);
    const Raised raised = raised_by([&] { read(text); });
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says("metrics.jsonl:7: "));
  }
}

TEST_CASE("the memory of several devices is read as its sum") {
  for (const std::string front : {"", "\t"}) {  // a tab sends it the long way
    const auto bytes = [&](const std::string& value) {
      return read(front + R"({"step": 1, "peak_device_bytes": )" + value + "}").peak_device_bytes;
    };
    CHECK(bytes(R"({"cuda:0": 5, "cuda:1": 7})") == 12);
    CHECK(bytes("{}") == 0);
    CHECK(bytes("9") == 9);
    CHECK(std::isnan(bytes("null")));
    CHECK(read(front + R"({"step": 1, "limit": "host->cuda:0"})").limit == "host->cuda:0");
    CHECK(read(front + R"({"step": 1, "limit": null})").limit.empty());
  }
}

TEST_CASE("the residency of layers is read either way") {
  for (const std::string front : {"", "\t"}) {  // a tab sends it the long way
    CHECK(read(front + R"({"step": 1, "residency": [0.25, 1]})").residency ==
          std::vector<double>{0.25, 1});
    CHECK(read(front + R"({"step": 1, "residency": null})").residency.empty());
    CHECK(read(front + R"({"step": 1})").residency.empty());
  }
}

TEST_CASE("what was foretold is read either way") {
  for (const std::string front : {"", "\t"}) {
    const StepLine line =
        read(front + R"({"step": 1, "prediction": {"token_hit": 0.5, "byte_hit": null}})");
    REQUIRE(line.prediction.size() == 2);
    CHECK(line.prediction[0] == std::pair<std::string, double>("token_hit", 0.5));
    CHECK(std::isnan(line.prediction[1].second));
  }
}

TEST_CASE("unknown members of any kind are passed over") {
  const StepLine line =
      read(R"({"step":3,"new":{"a":[{"b":"c\n"}]},"loss":2,"text":"\u00e9 {","flag":true})");
  CHECK(line.step == 3);
  CHECK(line.loss == 2);
}

TEST_CASE("the short way reads what the tree has, or nothing") {
  std::mt19937 random(11);
  const std::string letters = "{}[]\",:.0123456789-+eEnul \\\xc3";
  int simple_lines = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole_line();
    const int changes = static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0: text[at] = letter; break;
        case 1: text.insert(at, 1, letter); break;
        default: text.erase(at, 1);
      }
    }
    StepLine simple, tree;
    if (!read_simple_line(text, simple)) continue;
    ++simple_lines;
    // A space in front of a list of everything sends it the long way.
    const std::string other = "\t" + text;
    const Raised raised = raised_by([&] { read_step_line(other, "m", 1, tree); });
    const bool duplicate = raised.says("duplicate");  // the one thing that the short way lets pass
    INFO(text);
    REQUIRE((duplicate || (raised.code == ExitCode::done && same(simple, tree))));
  }
  CHECK(simple_lines > 5'000);
}
