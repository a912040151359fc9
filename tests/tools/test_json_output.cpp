// --json of verify, export, report, eval: one document on stdout, nothing else.
#include "base/sanitized.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("json: verify, export and report name what they made, and what is not whole") {
  const Workplace w;
  REQUIRE(w.run(w.train("run", {"--quiet"})).exit_code == 0);
  const auto document = [&](const std::vector<std::string>& words) {
    const ProgramResult r = w.run(words);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return parse_json(r.out, "out").dump();
  };
  for (const char* part : {"run", "run/model", "run/state/step-00000004"}) {
    CHECK(document({"verify", w.d / part, "--json"}) == R"({"ok": true})");
  }
  const std::string page = w.d / "page.html", out = w.d / "exported";
  CHECK(document({"report", w.d / "run", "--json", "--out", page}) ==
        Json(JsonObject{{"out", page}}).dump());
  CHECK(std::filesystem::exists(page));
  CHECK(document({"export", "--from-state", w.d / "run", "--json", "--out", out}) ==
        Json(JsonObject{{"out", out}}).dump());
  CHECK(std::filesystem::exists(out + "/config.json"));
  std::string damaged = content(w.d / "run/state/step-00000004/manifest.json");
  damaged[damaged.size() / 2] ^= 1;
  write(w.d / "run/state/step-00000004/manifest.json", damaged);
  const ProgramResult bad = w.run({"verify", w.d / "run", "--json"});
  CHECK(bad.exit_code == 4);
  CHECK(parse_json(bad.out, "out").dump() == R"({"ok": false})");
}

TEST_CASE("json: eval counts the tokens of each expert, each layer's sum is tokens x top-k") {
  const Workplace w;
  const ProgramResult r = w.run(
      {"eval", "--model", w.d / "model", "--data", w.d / "eval.jsonl", "--json", "--threads", "1"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const Json json = parse_json(r.out, "out");
  const JsonArray& layers = json.find("tokens_by_expert")->as_array();
  REQUIRE(layers.size() == 2);
  const JsonArray& load = json.find("expert_load")->as_array();
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    int64_t sum = 0, most = 0;
    REQUIRE(layers[layer].as_array().size() == 4);
    for (const Json& count : layers[layer].as_array()) {
      sum += count.as_int();
      most = std::max(most, count.as_int());
    }
    CHECK(sum == 2 * json.find("tokens")->as_int());
    CHECK(static_cast<double>(most) * 4 / static_cast<double>(sum) == load[layer].as_double());
  }
}

TEST_CASE("json: train prints one document at the end, of a finished run, too") {
  const Workplace w;
  const std::vector<std::string> words =
      w.train("run", {"--json", "--eval-data", w.d / "eval.jsonl", "--eval-at-start",
                      "--eval-every", "2", "--tokens-by-expert", "on"});
  const ProgramResult first = w.run(words);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  const Json json = parse_json(first.out, "out");
  const std::vector<Json> steps = lines_of(w.d / "run/metrics.jsonl");
  REQUIRE(steps.size() == 4);
  const auto at = [](const Json& object, const char* a, const char* b) {
    return object.find(a)->find(b)->dump();
  };
  CHECK(json.find("result")->as_string() == w.d / "run/model");
  // Under a sanitizer the process takes more memory than planned, which is an alarm.
  if (!kSanitized) CHECK(json.find("verdict")->as_string() == "ok");
  CHECK(json.find("steps")->as_int() == 4);
  CHECK(at(json, "loss", "first") == steps[0].find("loss")->dump());
  CHECK(at(json, "loss", "last") == steps[3].find("loss")->dump());
  CHECK(at(json, "eval_loss", "after") == steps[3].find("eval_loss")->dump());
  CHECK(json.find("eval_loss")->find("before")->as_double() > 0);
  const bool second_is_best =
      steps[1].find("eval_loss")->as_double() <= steps[3].find("eval_loss")->as_double();
  CHECK(json.find("best")->find("step")->as_int() == (second_is_best ? 2 : 4));
  CHECK(json.find("time_s")->as_double() > 0);
  for (const Json& step : steps) {
    const JsonArray& layers = step.find("tokens_by_expert")->as_array();
    REQUIRE(layers.size() == 2);
    for (const Json& layer : layers) {
      int64_t sum = 0;
      for (const Json& count : layer.as_array()) sum += count.as_int();
      CHECK(sum == 2 * step.find("tokens")->as_int());
    }
  }
  const ProgramResult again = w.run(words);
  CHECK(again.exit_code == 0);
  CHECK(again.out == first.out);
  const ProgramResult plain = w.run(w.train("plain", {"--method", "lora", "--json"}));
  REQUIRE(plain.exit_code == 0);
  const Json bare = parse_json(plain.out, "out");
  CHECK(bare.find("best")->is_null());
  CHECK(bare.find("eval_loss")->find("after")->is_null());
  CHECK(bare.find("result")->as_string() == w.d / "plain/adapter");
  CHECK(lines_of(w.d / "plain/metrics.jsonl")[0].find("tokens_by_expert") == nullptr);
}
