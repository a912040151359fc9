// hearth report as a user calls it, and what train tells at its end.
#include <algorithm>

#include "support/set_variable.h"
#include "workplace.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("a run, its summary, its page") {
  const SetVariable measured("HEARTH_RATES", "");
  Workplace w;
  const ProgramResult trained = w.run(w.train("run", {"--verbose"}));
  REQUIRE(trained.exit_code == 0);
  const std::string model = w.d / "run/model";
  for (const std::string& line :
       {"finished: " + model + "\n", "hearth report " + (w.d / "run") + "\n",
        "\n  model = AutoModelForCausalLM.from_pretrained(\"" + model + "\")\n",
        "\n  tokenizer = AutoTokenizer.from_pretrained(\"" + model + "\")\n"}) {
    INFO(line << trained.err);
    CHECK(trained.err.find(line) != std::string::npos);
  }
  const auto before = files_below(w.d / "run");
  const ProgramResult told = w.run({"report", w.d / "run"});
  CHECK(told.exit_code == 0);
  CHECK(told.err == "");
  CHECK(told.out == (w.d / "run/report.html") + "\n");
  auto after = files_below(w.d / "run");
  const std::string page = after.at("report.html");
  after.erase("report.html");
  CHECK(before == after);
  const std::vector<Json> metrics = lines_of(w.d / "run/metrics.jsonl");
  REQUIRE(metrics.size() == 4);
  for (const Json& line : metrics) {  // each step by its own value
    for (const char* key : {"loss", "grad_norm", "tokens_per_s", "bound_pct"}) {
      CHECK(page.find(line.find(key)->dump()) != std::string::npos);
    }
  }
  CHECK(page.find("qwen3_moe, computed in ") != std::string::npos);
  CHECK(page.find(" (100.0 %)") != std::string::npos);  // of the parameters
  CHECK(page.find("finished at step 4") != std::string::npos);

  REQUIRE(w.run({"report", w.d / "run", "--out", w.d / "page.html"}).exit_code == 0);
  CHECK(content(w.d / "page.html") == page);
  CHECK(w.run({"verify", w.d / "run"}).exit_code == 0);
  CHECK(w.run(w.train("run")).exit_code == 0);  // finished still
  CHECK(content(w.d / "run/report.html") == page);

  REQUIRE(w.run(w.train("other", {"--seed", "7"})).exit_code == 0);
  const ProgramResult both = w.run({"report", "--compare", w.d / "run", w.d / "other"});
  CHECK(both.out == (w.d / "run/report.html") + "\n");
  CHECK(content(w.d / "run/report.html").find(">seed<") != std::string::npos);
}

TEST_CASE("a step that is not finite leaves a log that its page shows") {
  Workplace w;
  std::vector<std::string> words = w.train("run", {"--weight-decay", "1000", "--warmup", "0"});
  std::replace(words.begin(), words.end(), std::string("1e-2"), std::string("1000"));
  std::replace(words.begin(), words.end(), std::string("4"), std::string("12"));
  const ProgramResult trained = w.run(words);
  CHECK(trained.exit_code == 5);
  const ProgramResult told = w.run({"report", w.d / "run"});
  CHECK(told.err == "");
  REQUIRE(told.exit_code == 0);
  const std::string page = content(w.d / "run/report.html");
  CHECK(page.find("ended with an error after step") != std::string::npos);
  CHECK(page.find("skipped step") != std::string::npos);
}

TEST_CASE("report of what is no run, or asked for wrongly") {
  Workplace w;
  CHECK(one_line(w.run({"report", w.d / "none"}), 3, "expected a run directory, found nothing"));
  CHECK(one_line(w.run({"report", w.d / "rows.jsonl"}), 3, "found a file"));
  CHECK(one_line(w.run({"report", w.d / "model"}), 3, "found none of these files"));
  CHECK(one_line(w.run({"report"}), 2, "hearth report RUN_DIR"));
  CHECK(
      one_line(w.run({"report", "a", "b"}), 2, "unexpected argument 'b'; --compare RUN RUN puts"));
  CHECK(one_line(w.run({"report", "a", "--compare", "b", "c"}), 2, "found both"));
  CHECK(one_line(w.run({"report", "--compare", "a"}), 2, "--compare"));
  CHECK(one_line(w.run({"report", "a", "--json"}), 3, "expected a run directory, found nothing"));
  CHECK(one_line(w.run(w.plan({"--compare", "single,chunked"})), 2, "not in this version"));
  CHECK(one_line(w.run({"report", "a", "--out", ""}), 2, "--out"));
  write(w.d / "metrics.jsonl", "{\"step\": 1, \"loss\": 2}\nno json\n");
  CHECK(one_line(w.run({"report", w.d.path()}), 3, "metrics.jsonl:2: "));
  write(w.d / "metrics.jsonl", "{\"step\": 1, \"loss\": 2}\nno json");  // torn
  CHECK(one_line(w.run({"report", w.d.path(), "--out", w.d / "no/such/folder.html"}), 4, "folder"));
  CHECK(w.run({"report", w.d.path()}).exit_code == 0);
  CHECK(one_line(w.run({"report", w.d.path(), "--out", w.d / "model"}), 2,
                 "give the name of a file"));
}
