// hearth profile as a user calls it, and a run paced by what it measured.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "setup/cost_table_file.h"
#include "workplace.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Shapes large enough that a task takes longer than the clock's grain.
std::string shapes(const Workplace& w) {
  std::string config = content(w.d / "config.json");
  const auto set = [&](const std::string& from, const std::string& to) {
    REQUIRE(config.find(from) != std::string::npos);
    config.replace(config.find(from), from.size(), to);
  };
  set(R"("hidden_size": 32)", R"("hidden_size": 128)");
  set(R"("moe_intermediate_size": 16)", R"("moe_intermediate_size": 128)");
  std::filesystem::create_directory(w.d / "shapes");
  write(w.d / "shapes/config.json", config);
  return w.d / "shapes";
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("profile: a table per place, with every kind, in a directory and in the cache") {
  Workplace w;
  const ProgramResult told =
      w.run({"profile", "--model", shapes(w), "--devices", "virtual:mem=64M/h2d=1G/d2h=500M,host",
             "--budget", "4s", "--out", w.d / "tables", "--json"});
  INFO(told.err);
  REQUIRE(told.exit_code == 0);
  CHECK(told.peak_bytes < uint64_t{1400} << 20);
  CHECK(told.err.find('\r') == std::string::npos);
  const Json document = parse_json(told.out, "stdout");
  std::set<std::string> files;
  for (const Json& file : document.find("files")->as_array()) files.insert(file.as_string());
  CHECK(files.contains(w.d / "tables/profile.html"));
  CHECK(std::count_if(files.begin(), files.end(), [](const std::string& file) {
          return file.find("/hearth/costs/") != std::string::npos && file.ends_with("/host.json");
        }) == 1);
  for (const auto& [place, name] :
       {std::pair("host", "host.json"), std::pair("virtual:0", "virtual-0.json")}) {
    INFO(place);
    CHECK(files.contains(w.d / "tables/" + name));
    const CostTableFile file = read_cost_table_file(w.d / "tables/" + name);
    CHECK(file.origin.device == place);
    CHECK(cost_table_json(file.table, file.origin).dump() ==
          document.find("tables")->find(place)->dump());
    std::set<TaskKind> kinds;
    for (const CostEntry& e : file.table.entries()) {
      kinds.insert(e.kind);
      if (e.kind == TaskKind::experts) CHECK(e.units.size() >= 20);
    }
    CHECK(kinds.size() == 9);
  }
  const CostTable device = read_cost_table(w.d / "tables/virtual-0.json");
  REQUIRE(device.links().size() == 2);
  CHECK(device.link_to("virtual:0")->bytes_per_s == 1e9);
  CHECK(device.link_from("virtual:0")->bytes_per_s == 5e8);
  CHECK(content(w.d / "tables/profile.html").find("experts forward, f32, 128 x 128") !=
        std::string::npos);
}

TEST_CASE("profile: what cannot be is refused") {
  Workplace w;
  const auto told = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"profile", "--model", w.d / "model"};
    if (more[0] != "--budget") words.insert(words.end(), {"--budget", "1s"});
    words.insert(words.end(), more.begin(), more.end());
    return w.run(words);
  };
  CHECK(one_line(told({"--devices", "virtual,host", "--out", w.d / "x.json"}), 2,
                 "places have a table each"));
  CHECK(one_line(told({"--budget", "0s"}), 2, "--budget: expected a time"));
  CHECK(one_line(told({"--devices", "virtual:mem=10k"}), 2, "memory"));
  CHECK(one_line(told({"--cpu-memory", "1M"}), 2, "0 are free; raise --cpu-memory"));
  CHECK(one_line(told({"--devices", "virtual:mem=1k"}), 2, ", or mem= of the devices"));
  CHECK(one_line(told({"--rank-links", "1G"}), 2, "--rank-links: needs --cluster"));
  // A warning waits until no place can be refused.
  const std::string idle = "--gpu-memory has no effect: --devices names no GPU";
  CHECK(one_line(told({"--gpu-memory", "1G", "--devices", "virtual:mem=1k"}), 2, "mem="));
  const ProgramResult file = told({"--out", w.d / "host.json", "--gpu-memory", "1G"});
  CHECK(file.exit_code == 0);
  CHECK(file.err.find("warning: " + idle) != std::string::npos);
  CHECK(file.out.find("wrote " + (w.d / "host.json")) != std::string::npos);
  CHECK(file.out.find("\nexperts    forward   f32") != std::string::npos);
  CHECK(file.out.find("\ncombine    backward  f32") != std::string::npos);
  CHECK(std::filesystem::exists(w.d / "host.html"));
}

TEST_CASE("profile: a cache that cannot be written costs no named table") {
  Workplace w;
  const char* const set = std::getenv("XDG_CACHE_HOME");
  const std::string before = set != nullptr ? set : "";
  setenv("XDG_CACHE_HOME", (w.d / "rows.jsonl").c_str(), 1);
  const ProgramResult told = w.run({"profile", "--model", w.d / "model", "--devices", "host",
                                    "--budget", "1s", "--out", w.d / "new/folder/host.json"});
  const ProgramResult alone =
      w.run({"profile", "--model", w.d / "model", "--devices", "host", "--budget", "1s"});
  set != nullptr ? setenv("XDG_CACHE_HOME", before.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  INFO(told.err);
  CHECK(told.exit_code == 0);
  CHECK(told.err.find("host: not kept for later runs: ") != std::string::npos);
  CHECK(std::filesystem::exists(w.d / "new/folder/host.json"));
  CHECK(alone.exit_code == 4);
}

TEST_CASE("profile: a table paces a run, and says how long its steps take") {
  Workplace w;
  const std::string model = shapes(w);
  REQUIRE(w.run({"init", "--config", model + "/config.json", "--out", w.d / "wide"}).exit_code ==
          0);
  REQUIRE(w.run({"profile", "--model", w.d / "wide", "--threads", "1", "--budget", "6s", "--out",
                 w.d / "host.json"})
              .exit_code == 0);
  std::vector<std::string> words =
      w.train("run", {"--devices", "host:costs=" + (w.d / "host.json")});
  std::replace(words.begin(), words.end(), w.d / "model", w.d / "wide");
  std::replace(words.begin(), words.end(), std::string("4"), std::string("12"));
  // One worker: the table is made, and the run timed, beside other tests.
  *(std::find(words.begin(), words.end(), "--threads") + 1) = "1";
  const ProgramResult trained = w.run(words);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.err.find("it has no times for") == std::string::npos);
  std::vector<double> seconds, on_time;  // steps, and steps without what other programs took
  for (const Json& line : lines_of(w.d / "run/metrics.jsonl")) {
    seconds.push_back(line.find("time_s")->as_double());
    on_time.push_back(seconds.back() - line.find("paced_late_s")->find("host")->as_double());
  }
  const double planned =
      parse_json(content(w.d / "run/plan.json"), "plan.json").find("time_s")->as_double();
  INFO("planned " << planned << " s, took " << median(seconds) << " s");
  // Other programs on the machine make tasks late, never early.
  CHECK(median(seconds) > .7 * planned);
  CHECK(median(on_time) <= median(seconds));
}
