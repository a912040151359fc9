// Numbers that are not finite, as a user of the real program meets them. The fault that is planted
// makes token 7 of any data NaN (in the built-in tokenizer: the byte 7).
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "base/file_ops.h"
#include "base/json.h"
#include "durable/tiny_run.h"
#include "state/state_search.h"

namespace hearth::test {
namespace {

struct Poisoned {
  TinyRun tiny;

  /// Rows of ids, one a step; `bad` steps from 1.
  std::string rows(const std::string& name, const std::vector<int>& bad) const {
    std::ofstream out(tiny.d / name);
    for (int step = 1; step <= 5; ++step) {
      const bool is_bad = std::find(bad.begin(), bad.end(), step) != bad.end();
      out << "{\"input_ids\": [" << 20 + step << (is_bad ? ", 7" : ", 8") << ", 30, 31]}\n";
    }
    return tiny.d / name;
  }
  Start with(std::vector<std::string> words) const {
    Start start = tiny.command(std::move(words));
    start.environment["HEARTH_PLANTED"] = "nan-token-7";
    return start;
  }
  Start train(const std::string& out, const std::vector<int>& bad, const std::string& keep) const {
    return with({"train",
                 "--model",
                 tiny.d / "model",
                 "--data",
                 rows(out + ".jsonl", bad),
                 "--out",
                 tiny.d / out,
                 "--steps",
                 "5",
                 "--micro-batch",
                 "1",
                 "--grad-accum",
                 "1",
                 "--packing",
                 "off",
                 "--shuffle",
                 "off",
                 "--save-every",
                 "1",
                 "--keep",
                 keep,
                 "--threads",
                 "1",
                 "--quiet"});
  }
};

TEST_CASE("numeric: eval and generate print no number that is not finite") {
  const Poisoned p;
  const std::string model = p.tiny.d / "model";
  for (const char* packing : {"on", "off"}) {
    const Ended eval = p.tiny.run(p.with(
        {"eval", "--model", model, "--data", p.rows("rows", {4}), "--packing", packing, "--json"}));
    INFO(eval.err);
    CHECK(eval.code == 5);
    CHECK(eval.out.empty());
    CHECK(eval.err.find("not finite") != std::string::npos);
  }
  CHECK(
      p.tiny.run(p.with({"eval", "--model", model, "--data", p.rows("good", {}), "--json"})).code ==
      0);
  for (const char* cache : {"on", "off"}) {
    const Ended text =
        p.tiny.run(p.with({"generate", "--model", model, "--prompt", "a\x07", "--kv-cache", cache,
                           "--max-new-tokens", "4", "--quiet"}));
    INFO(text.err);
    CHECK(wrong_refusal(text, 5, {"logits of token 1", "not finite"}) == "");
    CHECK(text.out.empty());
  }
}

TEST_CASE("numeric: exit codes, warnings and what stays of a run") {
  const Poisoned p;
  struct Expected {
    std::vector<int> bad;
    int code;
    int64_t last_good;  // step whose weights the newest state has
  };
  for (const auto& [bad, code, last_good] : std::vector<Expected>{
           {{2}, 0, 5}, {{1, 2}, 0, 5}, {{5}, 5, 4}, {{3, 4, 5}, 5, 2}, {{1, 2, 3, 4, 5}, 5, 0}}) {
    for (const std::string keep : {"1", "2"}) {
      const std::string out = "run" + std::to_string(bad.size() * 10 + bad[0]) + keep;
      const Start start = p.train(out, bad, keep);
      const Ended end = p.tiny.run(start);
      INFO(out << ": " << end.err);
      CHECK(end.code == code);
      CHECK(end.out.empty());
      for (const int step : bad) {
        if (bad[0] + 3 <= step) break;  // ended before
        CHECK(end.err.find("warning: step " + std::to_string(step) + ": ") != std::string::npos);
      }
      int64_t skipped = 0;
      for (const std::string& line : metrics_lines(p.tiny.d / out)) {
        skipped += parse_json(line, "metrics").find("loss")->is_null() ? 1 : 0;
      }
      CHECK(skipped == static_cast<int64_t>(std::min<size_t>(bad.size(), 3)));
      CHECK((file_info(p.tiny.d / (out + "/model")).kind == FileKind::directory) == (code == 0));
      // The newest state is whole, and its weights are those of the last good step.
      const auto newest = find_newest_state(p.tiny.d / out, [](const RejectedState&) {});
      REQUIRE(newest);
      const auto weights = [](const SavedState& state) {
        std::vector<StateDigest::Item> items = state.digest.components;
        std::erase_if(items, [](const auto& item) {
          return item.name == "progress" || item.name == "routing";
        });
        return items;
      };
      if (code == 5 && last_good > 0) {
        Start until = p.train(out + "-good", bad, keep);
        until.words[8] = std::to_string(last_good);
        REQUIRE(until.words[7] == "--steps");
        until.words.insert(until.words.end(), {"--lr-schedule", "constant", "--warmup", "0"});
        Start same = p.train(out + "-bad", bad, keep);
        same.words.insert(same.words.end(), {"--lr-schedule", "constant", "--warmup", "0"});
        REQUIRE(p.tiny.run(until).code == 0);
        REQUIRE(p.tiny.run(same).code == 5);
        const auto good =
            find_newest_state(p.tiny.d / (out + "-good"), [](const RejectedState&) {});
        const auto kept = find_newest_state(p.tiny.d / (out + "-bad"), [](const RejectedState&) {});
        REQUIRE((good && kept));
        CHECK(weights(*good) == weights(*kept));
      }
      // The same command ends the same way; without the fault a run that failed can go on.
      const auto before = content_below(p.tiny.d / (out + "/state"));
      CHECK(p.tiny.run(start).code == code);
      CHECK(content_below(p.tiny.d / (out + "/state")) == before);
    }
  }
}

}  // namespace
}  // namespace hearth::test
