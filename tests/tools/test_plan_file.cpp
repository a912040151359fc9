// --plan FILE: a plan that was printed is run.
#include <algorithm>
#include <iterator>

#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

TEST_CASE("--plan: the printed plan is run, or refused by the field that differs") {
  const Workplace w;
  const ProgramResult printed = w.run(w.plan({"--recompute", "blocks"}));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  write(w.d / "p.json", printed.out);
  const std::vector<std::string> with{"--plan", w.d / "p.json"};
  const ProgramResult r = w.run(w.train("run", with));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  // What the options left open came from the plan.
  const Json plan = parse_json(printed.out, "plan");
  const Json ran = parse_json(content(w.d / "run/plan.json"), "plan");
  CHECK(ran.find("recompute")->as_string() == "blocks");
  for (const char* key : {"group", "recompute", "micro_batches", "workers", "tasks"}) {
    CHECK(ran.find(key)->dump() == plan.find(key)->dump());
  }
  CHECK(content(w.d / "run/config.yaml").find("\nplan: \"") != std::string::npos);
  CHECK(w.run(w.train("run", with)).exit_code == 0);  // finished
  CHECK(w.run(w.plan(with)).exit_code == 0);

  const auto refused = [&](std::vector<std::string> more, int code, const std::string& part) {
    more.insert(more.end(), with.begin(), with.end());
    return one_line(w.run(w.train("other", more)), code, part);
  };
  CHECK(refused({"--recompute", "none"}, 2, "recompute: the plan has"));
  CHECK(refused({"--packing", "on"}, 2, "tokens_per_micro_batch: the plan has"));
  CHECK(refused({"--freeze", "*embed*"}, 2, "the plan has"));
  CHECK(refused({"--method", "lora", "--recompute", "none"}, 2,
                "p.json': method: the plan has '\"full\"', this run would have '\"lora\"'"));
  // Rows of the same lengths with another content.
  const std::string rows = content(w.d / "rows.jsonl");
  std::string changed = rows;
  changed.replace(changed.find("row"), 3, "wor");
  write(w.d / "rows.jsonl", changed);
  CHECK(refused({}, 2, "data: the plan has"));
  write(w.d / "rows.jsonl", rows);
  std::string other = printed.out;
  const auto change = [&](const std::string& from, const std::string& to) {
    other = printed.out;
    const size_t at = other.find(from);
    REQUIRE(at != std::string::npos);
    write(w.d / "p.json", other.replace(at, from.size(), to));
  };
  // What opening the model took is a part of the allowance at some starts.
  change("\"basis\": \"policy: ", "\"basis\": \"policy; measured: ");
  CHECK(w.run(w.train("again", with)).exit_code == 0);
  change("\"workers\": 2", "\"workers\": 1");
  CHECK(refused({}, 2, "workers: the plan has '1'"));
  change("\"micro_batches\": 2", "\"micro_batches\": 3");
  CHECK(refused({}, 2, "micro_batches: the plan has '3', this run would have '2'"));
  change("\"fits\": true", "\"fits\": false");
  CHECK(refused({}, 2, "fits"));
  change("\"group\":", "\"group\": 0, \"was\":");
  CHECK(refused({}, 3, "group: expected a whole number"));
  change("\"method\": \"full\",", "");
  CHECK(refused({}, 3, "p.json: an older version made this plan, without \"method\"; plan again"));
  change("\"parallel\":", "\"was\":");
  CHECK(refused({}, 3, "\"parallel\" is missing; this is not a plan"));
  write(w.d / "p.json", "[]");
  CHECK(refused({}, 3, "this is not a plan"));
  write(w.d / "p.json", "{");
  CHECK(refused({}, 3, "p.json"));
  CHECK_FALSE(fs::exists(w.d / "other"));
}

TEST_CASE("--plan: a plan for another memory or other links is refused by the key") {
  const Workplace w;
  const ProgramResult printed =
      w.run(w.plan({"--devices", "virtual:mem=1Gi/h2d=1G,host", "--cpu-memory", "2Gi"}));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  write(w.d / "p.json", printed.out);
  const auto refused = [&](const std::string& devices, const std::string& memory,
                           const std::string& part) {
    return one_line(w.run(w.train("other", {"--plan", w.d / "p.json", "--devices", devices,
                                            "--cpu-memory", memory})),
                    2, part);
  };
  CHECK(refused("virtual:mem=2Gi/h2d=1G,host", "2Gi", "memory of 'virtual:0': budget_bytes"));
  CHECK(refused("virtual:mem=1Gi/h2d=2G,host", "2Gi", "memory of 'virtual:0': links"));
  CHECK(refused("virtual:mem=1Gi/h2d=1G,host", "3Gi", "memory of 'host': budget_bytes"));
}

TEST_CASE("--plan: another model, or devices below other root complexes, are refused by the key") {
  const Workplace w;
  const std::vector<std::string> two{"--devices", "virtual:root=a/h2d=1G,virtual:root=b/h2d=1G"};
  const ProgramResult printed = w.run(w.plan(two));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  write(w.d / "p.json", printed.out);
  const std::vector<std::string> with{"--plan", w.d / "p.json"};
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.end(), with.begin(), with.end());
    return one_line(w.run(words), 2, part);
  };
  CHECK(refused(w.train("other", {"--devices", "virtual:root=a/h2d=1G,virtual:root=c/h2d=1G"}),
                "root of 'virtual:1': the plan has '\"b\"', this run would have '\"c\"'"));
  // Below one root complex, of other bandwidths.
  const auto shared = [](const std::string& rate) {
    return std::vector<std::string>{"--devices", "2xvirtual:root=a/h2d=1G/root-bw=" + rate};
  };
  const ProgramResult below_one = w.run(w.plan(shared("1G")));
  REQUIRE(below_one.exit_code == 0);
  write(w.d / "p.json", below_one.out);
  CHECK(refused(w.train("other", shared("2G")), "memory of 'virtual:0': links: the plan has"));
  CHECK(w.run(w.train("other", shared("1G"))).exit_code == 0);
  write(w.d / "p.json", printed.out);
  // The same tensors, computed otherwise.
  std::string config = content(w.d / "model/config.json");
  const size_t at = config.find("10000");
  REQUIRE(at != std::string::npos);
  fs::copy(w.d / "model", w.d / "turned");
  write(w.d / "turned/config.json", config.replace(at, 5, "20000"));
  const auto of_model = [&](const std::string& model, const std::string& out) {
    std::vector<std::string> words = w.train(out, two);
    *std::next(std::find(words.begin(), words.end(), "--model")) = w.d / model;
    return words;
  };
  CHECK(refused(of_model("turned", "other"), "model: the plan has"));
  // A copy of the model is the same model.
  fs::copy(w.d / "model", w.d / "copy");
  std::vector<std::string> same = of_model("copy", "run");
  same.insert(same.end(), with.begin(), with.end());
  CHECK(w.run(same).exit_code == 0);
}

TEST_CASE("--plan: a plan of another cost table is refused by the key") {
  const Workplace w;
  const auto table = [](const std::string& seconds, const std::string& made) {
    return R"({"format": "hearth-costs-1", "device": "host", "machine": "m", "made": ")" + made +
           R"(", "entries": [{"kind": "head", "phase": "forward", "dtype": "f32", "units": [1],
              "seconds": [)" +
           seconds + R"(]}], "links": []})";
  };
  write(w.d / "a.json", table("1e-9", "today"));
  write(w.d / "same #1: é.json", table("0.000000001", "yesterday"));
  write(w.d / "b.json", table("2e-9", "today"));
  const auto with = [&](const std::string& file) {
    return std::vector<std::string>{"--devices", "host:costs=" + (w.d / file), "--plan",
                                    w.d / "p.json"};
  };
  const ProgramResult printed = w.run(w.plan({"--devices", "host:costs=" + (w.d / "a.json")}));
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  write(w.d / "p.json", printed.out);
  const Json plan = parse_json(printed.out, "plan");
  const std::string digest = plan.find("memory")->as_array()[0].find("costs")->as_string();
  CHECK(digest.size() == 32);
  const auto refused = [&](const std::vector<std::string>& more) {
    return one_line(w.run(w.train("other", more)), 2,
                    "memory of 'host': costs: the plan has '\"" + digest);
  };
  CHECK(refused(with("b.json")));
  CHECK(refused({"--plan", w.d / "p.json"}));  // none
  CHECK_FALSE(fs::exists(w.d / "other"));
  CHECK(one_line(w.run(w.train("other", with("absent.json"))), 3, "absent.json"));
  // A table of the same times is the same table.
  const ProgramResult r = w.run(w.train("run", with("same #1: é.json")));
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(r.err.find("host: paced by its cost table; it has no times for") != std::string::npos);
  const Json ran = parse_json(content(w.d / "run/plan.json"), "plan");
  CHECK(ran.find("memory")->as_array()[0].find("costs")->as_string() == digest);
  for (const Json& line : lines_of(w.d / "run/metrics.jsonl")) {
    CHECK(line.find("paced_late")->as_int() >= 0);
  }
  // The recorded configuration runs again.
  CHECK(w.run({"plan", w.d / "run/config.yaml", "--json"}).exit_code == 0);
}
