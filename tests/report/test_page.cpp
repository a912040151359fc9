// The pages: whole as HTML, with all series and their numbers, and nothing of files as markup.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "page_checker.h"
#include "report/comparison.h"
#include "report/page.h"
#include "run_files.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const OptionDefaults kDefaults{{"lr", "1e-05"}, {"seed", "42"}, {"model", "\"\""}};

std::string page_of(const RunFiles& f) { return report_page(read_run(f.path()), kDefaults); }

std::vector<double> numbers(const Json& list) {
  std::vector<double> result;
  for (const Json& number : list.as_array()) result.push_back(number.as_double());
  return result;
}

}  // namespace

TEST_CASE("a page has every series of the run, with the numbers of its metrics") {
  RunFiles f;
  f.write_run();
  const std::string html = page_of(f);
  const Page page = checked_page(html);
  for (const char* id :
       {"loss", "lr", "grad-norm", "throughput", "bound", "busy", "aux-loss", "expert-load"}) {
    INFO(id);
    CHECK(page.ids.contains(id));
  }
  const Json& loss = page.values.find("charts")->find("loss")->as_array().at(0);
  CHECK(numbers(*loss.find("step")) == std::vector<double>{1, 2, 4});
  CHECK(numbers(*loss.find("mean")) == std::vector<double>{4.5, 3.25, 2.125});
  const Json& evaluation = page.values.find("charts")->find("loss")->as_array().at(1);
  CHECK(evaluation.find("name")->as_string() == "evaluation");
  CHECK(numbers(*evaluation.find("mean")) == std::vector<double>{4.75, 2.375});
  const Json& heat = *page.values.find("heat")->find("expert-load");
  CHECK(heat.find("rows")->as_array().size() == 2);
  CHECK(numbers(*heat.find("step")).size() == 6);
  // Axes with their names, values as tables, the events, the plan, the options.
  for (const char* part :
       {"nats per token", ">step<", "Values as a table", "step not finite, skipped", "resumed",
        "clipped above", "qwen3_moe", "1,000, of them trained 250 (25.0 %)", "a warning of the run",
        "master weights", "derived: 250 of 4 bytes", "1.049 MB", "524.3 kB", "some/model",
        "Bounded by <code>cpu</code> in 4 steps.", "Workers, summed: products 1 s",
        "2026-01-02 03:04:05 UTC", "finished at step 4", "from 4.75 at step 0"}) {
    INFO(part);
    CHECK(has(html, part) == (std::string(part) != "clipped above"));  // no such option here
  }
  const size_t own = html.find(">lr<"), others = html.find(">seed<");
  CHECK(own < others);
  CHECK(has(html.substr(own, others - own), "1 option at the default"));
}

TEST_CASE("the weights on devices are drawn by layer, if the metrics have them") {
  RunFiles f, other;
  f.write_run();
  other.write_run();
  CHECK_FALSE(checked_page(page_of(f)).ids.contains("residency"));
  std::string lines;
  for (int64_t step = 1; step <= 2; ++step) {
    std::string line = metrics_line(step, "2");
    line.insert(line.rfind('}'),
                step == 1 ? R"(, "residency": [0.25, 1])" : R"(, "residency": [0.5, 0.125])");
    lines += line;
  }
  f.write("metrics.jsonl", lines);
  const Page page = checked_page(page_of(f));
  CHECK(page.ids.contains("residency"));
  const JsonArray& rows = page.values.find("heat")->find("residency")->find("rows")->as_array();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].dump() == "[null, 25, 50, null, null]");  // the axis covers evaluations
  CHECK(rows[1].dump() == "[null, 100, 12.5, null, null]");
  const Page both = checked_page(comparison_page(read_run(other.path()), read_run(f.path()), {}));
  CHECK_FALSE(both.ids.contains("residency-1"));
  CHECK(both.ids.contains("residency-2"));
  CHECK(both.values.find("heat")->find("residency-2")->find("rows")->dump() ==
        page.values.find("heat")->find("residency")->find("rows")->dump());
}

TEST_CASE("what was foretold is drawn, if the metrics have it") {
  RunFiles f;
  f.write_run();
  CHECK_FALSE(checked_page(page_of(f)).ids.contains("prediction"));
  std::string lines;
  for (int64_t step = 1; step <= 2; ++step) {
    std::string line = metrics_line(step, "2");
    line.insert(line.rfind('}'), step == 1
                                     ? R"(, "prediction": {"token_hit": null, "byte_hit": null})"
                                     : R"(, "prediction": {"token_hit": 0.75, "byte_hit": null})");
    lines += line;
  }
  f.write("metrics.jsonl", lines);
  const Page page = checked_page(page_of(f));
  CHECK(page.ids.contains("prediction"));
  CHECK(page.text.find("choices of tokens") != std::string::npos);
  CHECK(page.text.find("bytes that devices needed") == std::string::npos);  // nothing is known
}

TEST_CASE("the utilisation of both roles is drawn, if the metrics have it") {
  RunFiles f;
  f.write_run();
  CHECK_FALSE(checked_page(page_of(f)).ids.contains("utilisation"));
  std::string lines;
  for (int64_t step = 1; step <= 2; ++step) {
    std::string line = metrics_line(step, "2");
    line.insert(line.rfind('}'), R"(, "utilisation": {"attention": 0.75, "experts": 0.5})");
    lines += line;
  }
  f.write("metrics.jsonl", lines);
  const Page page = checked_page(page_of(f));
  CHECK(page.ids.contains("utilisation"));
  CHECK(page.text.find("ranks with attention") != std::string::npos);
  CHECK(page.text.find("ranks with experts") != std::string::npos);
}

TEST_CASE("the predicted and the executed timeline of a step, and seconds by kind") {
  RunFiles f;
  f.write_run();
  CHECK_FALSE(checked_page(page_of(f)).ids.contains("timelines"));
  f.write("plan.json", R"({"timeline": {"step": 1234,
    "streams": [{"place": "host", "stream": "compute"}, {"place": "<b>", "stream": "copies in"},
                {"place": "idle", "stream": "compute"}],
    "predicted": [[0, "experts forward layer 0", 0, 500000], [1, "copy forward", 500000, 700000]],
    "executed": [[0, "experts forward layer 0", 0, 600000], [0, "update", 600000, 1600000],
                 [9, "no such stream", 0, 1], [0, "ends before it begins", 5, 1], "?", [0]]},
    "task_times": [{"name": "experts forward", "tasks": 12, "predicted_s": 0.5, "executed_s": 0.6},
                   {"name": "update forward", "tasks": 1, "predicted_s": null, "executed_s": 1.0},
                   {"name": 7, "tasks": 1e300}]})");
  const std::string html = page_of(f);
  const Page page = checked_page(html);
  CHECK(page.ids.contains("timelines"));
  for (const char* part : {"in step 1,234", "Predicted, 0.7 s", "Executed, 1.6 s", "host, compute",
                           "copies in", "experts forward", "120.0 %", "500 ms"}) {
    INFO(part);
    CHECK(has(html, part) == (std::string(part) != "500 ms"));
  }
  CHECK_FALSE(has(html, "idle, compute"));
  const size_t predicted = html.find("Predicted, "), executed = html.find("Executed, ");
  CHECK(predicted < executed);
  for (
      const char* hostile :
      {R"({"timeline": 1, "task_times": {}})", R"({"timeline": {"streams": 3}})",
       R"({"timeline": {"streams": [1], "step": 1e300, "predicted": {}, "executed": [[0, 1, 2, 3]]}})"}) {
    f.write("plan.json", hostile);
    checked_page(page_of(f));
  }
}

TEST_CASE("a page of a run without steps, of one under way, of one that a signal stopped") {
  RunFiles f;
  f.write("metrics.jsonl", "");
  CHECK(has(checked_page(page_of(f)).text, "no step yet"));
  f.write("metrics.jsonl", metrics_line(1, "null") + metrics_line(2, "null"));
  CHECK(has(checked_page(page_of(f)).text, "under way or broken off, last step 2"));
  f.write("journal.jsonl", "{\"event\": \"signal\", \"signal\": 2, \"step\": 2}\n");
  CHECK(has(checked_page(page_of(f)).text, "stopped by a signal after step 2"));
  f.write("journal.jsonl",
          "{\"event\": \"failed\", \"code\": 5, \"step\": 2, \"reason\": \"x\"}\n");
  CHECK(has(checked_page(page_of(f)).text, "ended with an error after step 2 (exit code 5)"));
  f.write("metrics.jsonl", metrics_line(7, "2.5"));  // a chart of one step
  checked_page(page_of(f));
}

TEST_CASE("the verdict on the run, of its last start") {
  RunFiles f;
  f.write("metrics.jsonl", metrics_line(1, "2"));
  const std::string alarm =
      R"({"event": "verdict", "verdict": "alarm", "reasons": ["attention did not move"], )"
      R"("findings": ["frozen: nothing", "steps: 1, none skipped", 7], "groups": {}})"
      "\n";
  f.write("journal.jsonl", alarm);
  const std::string text = checked_page(page_of(f)).text;
  for (const char* part : {"Verdict", "alarm", "attention did not move", "none skipped"}) {
    CHECK(has(text, part));
  }
  CHECK(has(page_of(f), "badge bad"));
  CHECK(has(page_of(f), "<details open><summary>What was checked</summary>"));
  std::string ok = alarm;
  ok.replace(ok.find("\"alarm\""), 7, "\"ok\"");
  f.write("journal.jsonl", ok);
  CHECK(has(page_of(f), "<details><summary>What was checked</summary>"));
  CHECK(has(checked_page(page_of(f)).text, "none skipped"));
  f.write("journal.jsonl", alarm + R"({"event": "resume", "step": 1})" + "\n");
  CHECK_FALSE(has(checked_page(page_of(f)).text, "Verdict"));
  f.write("journal.jsonl", R"({"event": "verdict", "verdict": {"a": 1}, "reasons": 3})"
                           "\n");
  CHECK_FALSE(has(checked_page(page_of(f)).text, "Verdict"));
}

TEST_CASE("chosen experts and the lines that load an adapter") {
  RunFiles f;
  f.write_run();
  f.write("journal.jsonl",
          R"({"event": "experts", "option": "top:50%", "share": 0.75, "layers": [)"
          R"({"layer": 0, "share": 0.5, "experts": [1, 3]}, {"layer": 2, "experts": [0, 2]}]})"
          "\n");
  std::filesystem::create_directory(f.d / "adapter");
  const std::string page = page_of(f);
  CHECK(page.find("option: top:50%; share: 0.75; layer 0: 1, 3; layer 2: 0, 2") !=
        std::string::npos);
  CHECK(page.find("base = AutoModelForCausalLM.from_pretrained(&quot;some/model&quot;)") !=
        std::string::npos);
  CHECK(page.find("AutoTokenizer") == std::string::npos);
  f.write("adapter/tokenizer.json", "{}");
  CHECK(page_of(f).find("tokenizer = AutoTokenizer.from_pretrained(") != std::string::npos);
}

TEST_CASE("samples of a prompt stand together") {
  RunFiles f;
  std::string events;
  for (const char* when : {"start", "end"}) {
    for (const char* prompt : {"first", "second"}) {
      events += std::string(R"({"event": "sample", "step": 1, "when": ")") + when +
                R"(", "prompt": ")" + prompt + R"(", "text": ")" + when + "-" + prompt + "\"}\n";
    }
  }
  f.write("metrics.jsonl", metrics_line(1, "2"));
  f.write("journal.jsonl", events);
  const std::string text = checked_page(page_of(f)).text;
  size_t at = 0;
  for (const char* part : {"start-first", "end-first", "start-second", "end-second"}) {
    const size_t found = text.find(part);
    REQUIRE(found != std::string::npos);
    CHECK(found >= at);
    at = found;
  }
}

TEST_CASE("nothing that files hold becomes markup") {
  const std::string evil = R"(</script><script>alert(1)</script><img src=x onerror=y>"'&)";
  const std::string json = Json(evil).dump();
  RunFiles f;
  f.write_run();
  f.write("metrics.jsonl",
          R"({"step": 1, "loss": 2, "time_s": 1, "busy": {)" + json + R"(: 0.5}, "limit": )" +
              json + R"(, "cpu_s": {)" + json + R"(: 1}, "stall_s": {)" + json + ": 1}}\n" +
              R"({"step": 2, "loss": 3, "time_s": 1, "busy": {)" + json + ": 0.25}}\n");
  f.write("journal.jsonl",
          "{\"event\": " + json + ", \"time\": " + json + ", \"message\": " + json + ", " + json +
              ": " + json + "}\n{\"event\": \"plan\", \"family\": " + json +
              "}\n{\"event\": \"verdict\", \"verdict\": " + json + ", \"reasons\": [" + json +
              "], \"findings\": [" + json + "]}\n{\"event\": \"sample\", \"step\": 1, \"when\": " +
              json + ", \"prompt\": " + json + ", \"text\": " + json +
              "}\n{\"event\": \"eval\", \"step\": 2, \"loss\": 2, \"when\": " + json + "}\n");
  f.write("plan.json", "{\"memory\": [{\"place\": " + json + ", \"lines\": [{\"name\": " + json +
                           ", \"bytes\": 3, \"basis\": " + json + "}]}]}");
  f.write("config.yaml", evil + ": " + evil + "\nmodel: " + json + "\ndata: " + evil + "\n");
  for (const std::string& html : {report_page(read_run(f.path()), kDefaults),
                                  comparison_page(read_run(f.path()), read_run(f.path()), {})}) {
    Page page;
    CHECK(read_page(html, page) == "");
    CHECK(std::count(page.elements.begin(), page.elements.end(), "script") == 2);
    CHECK(std::count(page.elements.begin(), page.elements.end(), "img") == 0);
    CHECK_FALSE(has(html, "<img"));
    CHECK_FALSE(has(html, "alert(1)</script>"));
  }
}

TEST_CASE("bytes that are no text, and marks that turn it around, are replaced") {
  RunFiles f;
  f.write("config.yaml",
          "lr: a\xff"
          "b\x1b[31m\xe2\x80\xae"
          "c\n");
  const std::string html = page_of(f);
  checked_page(html);
  CHECK(has(html, "a\uFFFDb\uFFFD[31m\uFFFDc"));
}

TEST_CASE("a long run is a small page that shows the spike of one step") {
  RunFiles f;
  std::string lines;
  for (int64_t step = 1; step <= 20'000; ++step) {
    lines += metrics_line(step, step == 12'345 ? "77.25" : "1.5");
  }
  f.write("metrics.jsonl", lines);
  const std::string html = page_of(f);
  CHECK(html.size() < 400'000);
  const Page page = checked_page(html);
  const Json& loss = page.values.find("charts")->find("loss")->as_array().at(0);
  const std::vector<double> most = numbers(*loss.find("max"));
  CHECK(most.size() == 500);
  CHECK(*std::max_element(most.begin(), most.end()) == 77.25);
  const std::vector<double> mean = numbers(*loss.find("mean")), least = numbers(*loss.find("min"));
  CHECK(*std::max_element(mean.begin(), mean.end()) == 3.3937);  // 39 of 40 steps at 1.5
  CHECK(*std::min_element(mean.begin(), mean.end()) == 1.5);
  CHECK(*std::max_element(least.begin(), least.end()) == 1.5);
  CHECK(has(html, "class=\"band c0\""));
  CHECK(has(html, "id=\"loss-log\" checked"));  // or the curve would be flat
}

TEST_CASE("two runs on one page") {
  RunFiles a, b;
  a.write_run();
  b.write_run();
  b.write("metrics.jsonl", metrics_line(1, "4.5") + metrics_line(2, "1.0625"));
  b.write("config.yaml", "model: \"some/model\"\nlr: 0.25\nseed: 42\n");
  const std::string html = comparison_page(read_run(a.path()), read_run(b.path()), kDefaults);
  const Page page = checked_page(html);
  const JsonArray& loss = page.values.find("charts")->find("loss")->as_array();
  REQUIRE(loss.size() == 2);
  CHECK(numbers(*loss[0].find("mean")) == std::vector<double>{4.5, 3.25, 2.125});
  CHECK(numbers(*loss[1].find("mean")) == std::vector<double>{4.5, 1.0625});
  CHECK(has(html, "\u221250.0 %"));  // 2.125 to 1.0625
  const std::string options = html.substr(html.find("Options that differ"));
  CHECK(has(options, ">lr<"));
  CHECK_FALSE(has(options, ">seed<"));
  CHECK(page.ids.contains("expert-load-2"));
}
