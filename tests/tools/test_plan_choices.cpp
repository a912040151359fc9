// Plans beside each other and beside their runs: --compare, --tune, predicted and executed timelines.
#include <algorithm>
#include <set>

#include "support/has.h"
#include "support/set_variable.h"
#include "support/test_paths.h"
#include "workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> without_json(std::vector<std::string> words) {
  words.erase(std::find(words.begin(), words.end(), "--json"));
  return words;
}

/// The words with another value of an option.
std::vector<std::string> with_value(std::vector<std::string> words, const std::string& option,
                                    const std::string& value) {
  *(std::find(words.begin(), words.end(), option) + 1) = value;
  return words;
}

/// The copies of a trace: task, link and bytes.
std::set<std::string> copies_in(const std::string& path) {
  std::set<std::string> copies;
  const Json trace = parse_json(content(path), path);
  for (const Json& event : trace.find("traceEvents")->as_array()) {
    const Json* kind = event.find("cat");
    if (kind == nullptr || kind->as_string() != "copy") continue;
    const Json& args = *event.find("args");
    for (const char* key : {"task", "link", "bytes", "block"}) {
      REQUIRE(args.find(key) != nullptr);
    }
    copies.insert(args.find("task")->dump() + " " + args.find("link")->as_string() + " " +
                  args.find("bytes")->dump());
  }
  return copies;
}

}  // namespace

TEST_CASE("plan --trace: the predicted timeline has the copies of the executed one") {
  const Workplace w;
  const SetVariable assumed("HEARTH_RATES", "assumed");
  std::string rows;  // of one length, so that every micro-batch is full
  for (int i = 0; i < 16; ++i) rows += "{\"text\": \"" + std::string(80, 'x') + "\"}\n";
  write(w.d / "rows.jsonl", rows);
  const std::vector<std::string> more{"--devices", "virtual:mem=1Gi/h2d=1G/d2h=1G,host",
                                      "--packing", "off"};
  std::vector<std::string> planned = more, trained = more;
  planned.insert(planned.end(), {"--trace", w.d / "planned.json"});
  trained.insert(trained.end(), {"--trace", w.d / "trained.json"});
  const ProgramResult plan = w.run(w.plan(planned));
  INFO(plan.err);
  REQUIRE(plan.exit_code == 0);
  const ProgramResult run = w.run(w.train("run", trained));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const std::set<std::string> copies = copies_in(w.d / "planned.json");
  CHECK(copies.size() > 4);
  CHECK(copies == copies_in(w.d / "trained.json"));

  // The run keeps both timelines, and its report shows them.
  const Json kept = parse_json(content(w.d / "run/plan.json"), "plan.json");
  const Json& timeline = *kept.find("timeline");
  CHECK(timeline.find("step")->as_int() == 4);
  CHECK(timeline.find("predicted")->as_array().size() ==
        timeline.find("executed")->as_array().size());
  int64_t tasks = 0;
  for (const Json& kind : kept.find("task_times")->as_array()) {
    tasks += kind.find("tasks")->as_int();
    CHECK(kind.find("executed_s")->as_double() > 0);
  }
  CHECK(tasks == kept.find("tasks")->as_int());
  REQUIRE(w.run({"report", w.d / "run"}).exit_code == 0);
  const std::string page = content(w.d / "run/report.html");
  CHECK(page.find("A step, predicted and executed") != std::string::npos);
  CHECK(page.find("experts backward") != std::string::npos);
}

TEST_CASE("plan --compare: two modes, or two files, side by side") {
  const Workplace w;
  const SetVariable assumed("HEARTH_RATES", "assumed");
  const auto compared = [&](const std::string& names, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--compare", names});
    return w.plan(more);
  };
  const std::vector<std::string> device{"--devices", "virtual:mem=1Gi"};
  const ProgramResult modes = w.run(compared("single,pipeline", device));
  INFO(modes.err);
  REQUIRE(modes.exit_code == 0);
  const Json json = parse_json(modes.out, "stdout");
  REQUIRE(json.find("plans")->as_array().size() == 2);
  for (const Json& side : json.find("plans")->as_array()) {
    CHECK(side.find("plan")->find("parallel")->as_string() == side.find("name")->as_string());
  }
  const ProgramResult text = w.run(without_json(compared("single,pipeline", device)));
  for (const char* part : {"time of a step", "memory of virtual:0", "single", "pipeline"}) {
    CHECK(text.out.find(part) != std::string::npos);
  }
  write(w.d / "a.json", w.run(w.plan({"--recompute", "none"})).out);
  write(w.d / "b.json", w.run(w.plan({"--recompute", "blocks"})).out);
  const ProgramResult files = w.run(compared(w.d / "a.json," + (w.d / "b.json")));
  INFO(files.err);
  REQUIRE(files.exit_code == 0);
  CHECK(parse_json(files.out, "stdout").find("faster")->as_string() == w.d / "a.json");
  // Files need no model, and a name that is neither is all that is told.
  CHECK(w.run({"plan", "--compare", w.d / "a.json," + (w.d / "b.json")}).exit_code == 0);
  CHECK(one_line(w.run({"plan", "--compare", "a.json"}), 2, "--compare: expected two plans"));
  CHECK(one_line(w.run({"plan", "--compare", "sinlge,./b.json"}), 2, "--compare: "));
  CHECK(one_line(w.run({"plan", "--compare", "single,./b.json"}), 2, "--model is missing"));
  CHECK(one_line(w.run(compared("single")), 2, "expected two plans"));
  CHECK(one_line(w.run(compared("single,chunked")), 2, "not in this version"));
  CHECK(one_line(w.run(compared("single,./none.json")), 2, "./none.json"));
  write(w.d / "bad.json", "[]");
  CHECK(one_line(w.run(compared("single," + (w.d / "bad.json"))), 3, "this is not a plan"));
}

TEST_CASE("plan --tune: schedules are tried, and the printed plan runs") {
  const Workplace w;
  fs::create_directory(w.d / "tmp");
  const SetVariable assumed("HEARTH_RATES", "assumed"), folder("TMPDIR", w.d / "tmp");
  const std::vector<std::string> more{"--tune", "2m"};
  const ProgramResult tuned = w.run(w.plan(more));
  INFO(tuned.err);
  REQUIRE(tuned.exit_code == 0);
  CHECK(fs::is_empty(w.d / "tmp"));
  CHECK_FALSE(fs::exists(w.d / "unused"));
  const Json plan = parse_json(tuned.out, "stdout");
  const JsonArray& tried = plan.find("tuned")->as_array();
  REQUIRE(tried.size() == 4);
  int accepted = 0;
  for (const Json& one : tried) {
    INFO(one.dump());
    CHECK(one.find("predicted_s")->as_double() > 0);
    CHECK(one.find("failure")->as_string().empty());
    REQUIRE(one.find("measured_s")->is_number());
    CHECK(one.find("spread_s")->as_double() >= 0);
    if (!one.find("accepted")->as_bool()) continue;
    ++accepted;
    // Another schedule than the default, and faster by more than both spreads.
    const auto number = [](const Json& of, const char* key) { return of.find(key)->as_double(); };
    CHECK(&one != &tried[0]);
    CHECK(number(tried[0], "measured_s") - number(one, "measured_s") >
          std::max(number(tried[0], "spread_s"), number(one, "spread_s")));
  }
  CHECK(accepted <= 1);
  CHECK(plan.find("bits")->as_string() == "same");
  write(w.d / "plan.json", tuned.out);
  const ProgramResult run = w.run(w.train("run", {"--plan", w.d / "plan.json"}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(one_line(w.run(with_value(w.plan(more), "--steps", "2")), 2, "--steps 2 are too few"));
}

TEST_CASE("plan --tune: with a list of devices the workers stay, and the default is not accepted") {
  const Workplace w;
  fs::create_directory(w.d / "tmp");
  const SetVariable assumed("HEARTH_RATES", "assumed"), folder("TMPDIR", w.d / "tmp");
  // Leaves nothing open but the workers.
  std::vector<std::string> words = with_value(
      w.plan({"--tune", "2m", "--devices", "host", "--recompute", "none"}), "--grad-accum", "1");
  const auto threads = std::find(words.begin(), words.end(), "--threads");
  words.erase(threads, threads + 2);
  const ProgramResult tuned = w.run(words);
  INFO(tuned.err);
  REQUIRE(tuned.exit_code == 0);
  const Json plan = parse_json(tuned.out, "stdout");
  const JsonArray& tried = plan.find("tuned")->as_array();
  REQUIRE(tried.size() == 1);
  CHECK(tried[0].find("measured_s")->is_number());
  CHECK_FALSE(tried[0].find("accepted")->as_bool());
}

TEST_CASE("plan --tune: the cut into stages is tried, too, and runs as printed") {
  const Workplace w;
  fs::create_directory(w.d / "tmp");
  const SetVariable assumed("HEARTH_RATES", "assumed"), folder("TMPDIR", w.d / "tmp");
  // Leaves open the cut, and whether the experts are on the host.
  std::vector<std::string> words =
      with_value(w.plan({"--tune", "2m", "--devices", "2xvirtual", "--recompute", "none"}),
                 "--grad-accum", "1");
  const ProgramResult tuned = w.run(words);
  INFO(tuned.err);
  REQUIRE(tuned.exit_code == 0);
  const Json plan = parse_json(tuned.out, "stdout");
  std::set<std::string> cuts;
  for (const Json& one : plan.find("tuned")->as_array()) {
    INFO(one.dump());
    CHECK(one.find("failure")->as_string().empty());
    REQUIRE(one.find("measured_s")->is_number());
    const std::string& name = one.find("schedule")->as_string();
    REQUIRE(name.find(", layers ") != std::string::npos);
    cuts.insert(name.substr(name.find(", layers ")));
  }
  CHECK(cuts.size() >= 2);
}

TEST_CASE("plan --tune: a signal ends the steps that are tried, and leaves nothing") {
  const Workplace w;
  fs::create_directory(w.d / "tmp");
  const SetVariable assumed("HEARTH_RATES", "assumed");
  std::vector<std::string> words{"-s", "INT", "--preserve-status", "2", test_binary()};
  // Long steps, so that the signal comes while they run.
  const std::vector<std::string> long_steps =
      with_value(with_value(w.plan({"--tune", "5m"}), "--grad-accum", "4096"), "--steps", "1000");
  words.insert(words.end(), long_steps.begin(), long_steps.end());
  ProgramResult stopped;
  {
    const SetVariable folder("TMPDIR", w.d / "tmp");
    stopped = run_program("/usr/bin/timeout", words);
  }
  INFO(stopped.err);
  CHECK(stopped.exit_code == 75);
  CHECK(fs::is_empty(w.d / "tmp"));
}

TEST_CASE(
    "a run that is refused says nothing else: warnings of its devices are for accepted runs") {
  const Workplace w;
  CHECK(one_line(w.run(w.plan({"--devices", "7xvirtual"})), 2, "7 devices for 2 layers"));
  const std::string crowded = "compute streams share ";
  CHECK(has(w.run(w.plan({"--devices", "3xvirtual:mem=1Gi"})).err, crowded));  // of two --threads
  CHECK(one_line(w.run(w.plan({"--devices", "3xvirtual:mem=64k"})), 2, "may use only 64 kB"));
  const std::vector<std::string> refused[] = {{"eval", "--data", w.d / "rows.jsonl"},
                                              {"generate", "--prompt", "a"}};
  for (std::vector<std::string> words : refused) {
    words.insert(words.end(), {"--model", w.d / "model", "--threads", "2", "--devices"});
    words.push_back("3xvirtual:mem=1Gi");
    CHECK(has(w.run(words).err, crowded));
    words.back() = "3xvirtual:mem=64k";
    CHECK(one_line(w.run(words), 2, "may use only 64 kB"));
  }
  REQUIRE(w.run(w.train("run", {"--devices", "2xvirtual"})).exit_code == 0);
  const ProgramResult other = w.run(w.train("run", {"--devices", "3xvirtual"}));
  INFO(other.err);
  CHECK(one_line(other, 2, "'2xvirtual' when the state was saved and is '3xvirtual' now"));
  const ProgramResult allowed =
      w.run(w.train("run", {"--devices", "3xvirtual", "--allow-change", "devices"}));
  CHECK(has(allowed.err, "already finished"));
  CHECK_FALSE(has(allowed.err, crowded));
  const ProgramResult crowded_run = w.run(w.train("crowded", {"--devices", "3xvirtual"}));
  CHECK(has(crowded_run.err, crowded));
  CHECK(has(content(w.d / "crowded/journal.jsonl"), crowded));
}
