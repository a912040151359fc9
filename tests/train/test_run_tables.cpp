// The cost tables that a run plans by: given, from the cache, measured, and saved for a resume.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <set>

#include "budget/plan_time.h"
#include "setup/run_tables.h"
#include "support/has.h"
#include "topology/topology.h"
#include "train/known_tables.h"
#include "train/planned_run.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// Every task takes `seconds`, whatever its size. With `spec`, entries state its shapes.
CostTable flat_table(double seconds, const ModelSpec* spec = nullptr, double bytes_per_s = 1e9,
                     const std::string& place = "host") {
  std::vector<CostEntry> entries;
  for (const TaskKind kind :
       {TaskKind::embed, TaskKind::attention, TaskKind::mlp, TaskKind::dispatch, TaskKind::experts,
        TaskKind::combine, TaskKind::head, TaskKind::norm, TaskKind::update}) {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      CostEntry entry;
      entry.kind = kind;
      entry.phase = phase;
      entry.units = {1 << 30};
      entry.seconds = {seconds};
      if (spec != nullptr) {
        Task task;
        task.kind = kind;
        entry.shape = cost_shape(task, *spec);
      }
      entries.push_back(std::move(entry));
    }
  }
  std::vector<CostLink> links;
  if (place != "host") {
    links = {{"host->" + place, bytes_per_s, 0, bytes_per_s},
             {place + "->host", bytes_per_s, 0, bytes_per_s}};
  }
  return {std::move(entries), std::move(links)};
}

/// A cache of the user's own, for as long as it lives.
class TableCache {
 public:
  explicit TableCache(const std::string& directory) {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", directory.c_str(), 1);
  }
  ~TableCache() {
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }
  TableCache(const TableCache&) = delete;
  TableCache& operator=(const TableCache&) = delete;

 private:
  std::optional<std::string> before_;
};

struct TableFixture : TrainingFixture {
  TableFixture() { assumed.reset(); }
  TableCache cache{dir / "cache"};

  void give(const std::string& directory, const std::string& place, double seconds,
            const Json& machine = "a test", const std::string& device = "") const {
    make_directory(dir / directory);
    write_cost_table(table_path(dir / directory, place), flat_table(seconds, nullptr, 1e9, place),
                     {device.empty() ? place : device, machine, 1});
  }
  TrainConfig with(const std::string& out, const std::string& profile,
                   const std::string& devices = "host") const {
    TrainConfig c = config(out);
    c.compute = ComputeChoice::f32;
    c.devices = devices;
    if (!profile.empty()) c.profile = dir / profile;
    c.recorded.push_back({"profile", profile.empty() ? "null" : Json(c.profile).dump(), false});
    return c;
  }
  PlannedRun planned(const TrainConfig& config) const {
    RecordingReporter reporter;
    return {config, open_model(config), reporter};
  }
  double planned_s(const TrainConfig& config) const { return planned(config).times.step.time_s; }
  Json plan_of_run(const std::string& out) const {
    return parse_json(read_file(dir / (out + "/plan.json")), "plan.json");
  }
  auto refusal_of(const TrainConfig& config) const {
    return raised_by([&] { plan_of(config); });
  }
};

bool has_line(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("run tables: the tables of a directory give the times, and nothing is measured") {
  TableFixture f;
  f.give("slow", "host", 1e-2);
  f.give("fast", "host", 1e-3);
  const AssumedRates quick;
  const double slow = f.planned_s(f.with("run", "slow")), fast = f.planned_s(f.with("run", "fast"));
  CHECK(slow == Catch::Approx(10 * fast));
  const PlanReport report = plan_of(f.with("run", "slow"));
  CHECK(report.json.find("time_s")->as_double() == slow);
  const Json& host = *report.json.find("costs")->find("host");
  CHECK(host.find("source")->as_string() == "profile");
  CHECK(host.find("digest")->as_string() == flat_table(1e-2).digest().hex());
  CHECK(has_line(report.text, "host: times from the given cost table"));
  CHECK(has_line(report.text, "predicted from cost tables: "));
  // A place with costs= keeps its table.
  const TrainConfig paced =
      f.with("run", "slow", "host:costs=" + table_path(f.dir / "fast", "host"));
  CHECK(f.planned_s(paced) == fast);
}

TEST_CASE("run tables: what --profile cannot use is refused in a line") {
  TableFixture f;
  const AssumedRates quick;
  f.give("tables", "host", 1e-3);
  const auto refused = [&](const TrainConfig& config, const std::string& part) {
    const auto raised = f.refusal_of(config);
    INFO(raised.message);
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says(part));
    CHECK_FALSE(raised.says("\n"));
  };
  refused(f.with("run", "absent"), "absent': not a directory");
  refused(f.with("run", "rows.jsonl"), "rows.jsonl': not a directory");
  refused(f.with("run", "tables", "virtual,host"), "no table of virtual:0");
  f.give("other", "host", 1e-3, JsonObject{{"identity", "0123456789abcdef"}});
  refused(f.with("run", "other"), "another machine");
  f.give("copied", "host", 1e-3, "a test", "cuda:0");
  refused(f.with("run", "copied"), "the table of 'cuda:0', not of host");
  f.write(f.dir / "tables/host.json", "{}");
  refused(f.with("run", "tables"), "tables/host.json");
  // What no state could hold.
  f.give("large", "host", 1e-3, std::string(size_t{9} << 20, 'x'));
  refused(f.with("run", "large"), "more than 8 MiB");
  // This machine's own is taken.
  f.give("own", "host", 1e-3, machine_json(detect_topology()));
  CHECK(f.planned_s(f.with("run", "own")) > 0);
}

TEST_CASE("run tables: a resume plans by the saved table, to the digit, and reads no other") {
  TableFixture f;
  const AssumedRates quick;
  f.give("tables", "host", 1.23456789e-3);
  const TrainConfig config = f.with("run", "tables");
  REQUIRE(f.run_until(config, 4) == ExitCode::stopped);
  const Json before = f.plan_of_run("run");
  f.give("tables", "host", 7e-3);
  CHECK(f.planned(config).model.tables.find("host")->saved);
  CHECK(has_line(plan_of(config).text, "host: times from the cost table of the saved state"));
  std::filesystem::remove_all((f.dir / "tables").c_str());
  REQUIRE(f.run_until(config, 6) == ExitCode::stopped);
  const Json after = f.plan_of_run("run");
  for (const char* key : {"time_s", "bound_s", "phases", "kinds", "limit", "stages", "costs"}) {
    INFO(key);
    CHECK(after.find(key)->dump() == before.find(key)->dump());
  }
  // Another directory is a change that has to be allowed.
  f.give("new", "host", 2e-3);
  TrainConfig changed = f.with("run", "new");
  const auto raised = raised_by([&] { f.run(changed); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("profile"));
  changed.allow_change = {"profile"};
  CHECK(f.planned_s(changed) == Catch::Approx(f.planned_s(f.with("fresh", "new"))));
  REQUIRE(f.run(changed) == ExitCode::done);
  CHECK(f.plan_of_run("run").find("costs")->find("host")->find("digest")->as_string() ==
        flat_table(2e-3).digest().hex());
  // Tables are no part of the root.
  REQUIRE(f.run(f.with("plain", "")) == ExitCode::done);
  CHECK(f.root("run") == f.root("plain"));
  CHECK(f.result("run") == f.result("plain"));
}

TEST_CASE("run tables: a run without tables measures one, saves it, and measures once") {
  TableFixture f;
  const TrainConfig config = f.with("run", "");
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  const Json before = f.plan_of_run("run");
  const Json& host = *before.find("costs")->find("host");
  CHECK(host.find("source")->as_string() == "measured");
  CHECK(before.find("time_s")->as_double() > 0);
  CHECK(before.find("bound_s")->as_double() <= before.find("time_s")->as_double());
  CHECK(has_line(read_file(f.dir / "run/journal.jsonl"),
                 R"({"host": {"digest": ")" + host.find("digest")->as_string()));
  // Nothing can be measured now, so the times can only be the saved ones.
  const AssumedRates quick;
  const PlannedRun again = f.planned(config);
  CHECK(again.model.tables.find("host")->saved);
  CHECK(again.times.step.time_s == before.find("time_s")->as_double());
  CHECK(again.times.source == "cost tables");
  // A state of an older version has no tables.
  const PlannedRun other = f.planned(f.with("other", ""));
  CHECK(other.model.tables.by_place.empty());
}

TEST_CASE("run tables: a measured table has times for all tasks of ranks that share experts") {
  TableFixture f;
  TrainConfig config = f.with("run", "");
  config.grad_accum = config.thread_ranks = 2;
  config.parallel = "ep";
  const PlannedRun run = f.planned(config);
  CHECK(run.model.tables.find("host")->source == TableSource::measured);
  const std::vector<std::string> lines = table_lines(run.model);
  REQUIRE(lines.size() == 1);
  INFO(lines.front());
  CHECK_FALSE(has_line(lines.front(), "no times for"));
}

TEST_CASE("run tables: measured tables decide no cut, given ones do") {
  TableFixture f;
  f.give("tables", "virtual:0", 1e-3);
  f.give("tables", "virtual:1", 1e-2);
  const std::string two = "virtual:mem=64M,virtual:mem=64M";
  const auto stages = [&](const TrainConfig& config) {
    return plan_of(config).json.find("stages")->dump();
  };
  const std::string given = stages(f.with("run", "tables", two));
  const std::string measured = stages(f.with("run", "", two));
  std::string counted;
  {
    const AssumedRates quick;
    counted = stages(f.with("run", "", two));
  }
  CHECK(measured == counted);
  CHECK(given != counted);
  // Devices that work on the same cores alike share what was measured.
  const PlannedRun run = f.planned(f.with("run", "", two));
  const RunTable *one = run.model.tables.find("virtual:0"),
                 *other = run.model.tables.find("virtual:1");
  REQUIRE((one != nullptr && other != nullptr));
  CHECK(one->table->entries().size() == other->table->entries().size());
  CHECK(one->table->entries().front().seconds == other->table->entries().front().seconds);
  CHECK(one->table->link_to("virtual:0")->bytes_per_s > 1e6);
}

TEST_CASE("run tables: a table in the cache is taken if it fits the run") {
  TableFixture f;
  const TrainConfig config = f.with("run", "");
  const auto opened = open_model(config);
  const std::string cache = cost_cache_directory(opened->topology);
  REQUIRE(cache.starts_with(f.dir / "cache"));
  make_directory(cache);
  const auto put = [&](const CostTable& table) {
    write_cost_table(table_path(cache, "host"), table,
                     {"host", machine_json(opened->topology), seconds_now() - 3 * 86400});
  };
  put(flat_table(1e-3, &opened->spec));
  const PlanReport report = plan_of(config);
  CHECK(has_line(report.text, "host: times from the cost table in the cache, 3 days old"));
  CHECK(report.json.find("costs")->find("host")->find("source")->as_string() == "cache");
  {
    const AssumedRates quick;
    f.give("same", "host", 1e-3);
    CHECK(report.json.find("time_s")->as_double() == f.planned_s(f.with("run", "same")));
  }
  // Of other shapes, of too few tokens, of a run that freezes some, or damaged: measured.
  const auto source = [&](const TrainConfig& c) {
    return plan_of(c).json.find("costs")->find("host")->find("source")->as_string();
  };
  TrainConfig frozen = config;
  frozen.freeze = {"*experts*"};
  CHECK(source(frozen) == "measured");
  std::vector<CostEntry> small = flat_table(1e-3, &opened->spec).entries();
  const auto ends_at = [&](int64_t tokens, Phase phase) {
    for (CostEntry& entry : small) {
      if (entry.kind == TaskKind::attention && entry.phase == phase) entry.units = {tokens};
    }
    put(CostTable(small, {}));
    return source(config);
  };
  const int64_t enough = std::min<int64_t>(64, config.seq_len * config.micro_batch);
  CHECK(ends_at(enough, Phase::forward) == "cache");
  CHECK(ends_at(enough, Phase::backward) == "cache");
  CHECK(ends_at(enough - 1, Phase::backward) == "measured");
  ModelSpec wider = opened->spec;
  wider.hidden *= 2;
  put(flat_table(1e-3, &wider));
  CHECK(source(config) == "measured");
  f.write(table_path(cache, "host"), "{");
  CHECK(source(config) == "measured");
}

TEST_CASE("run tables: the plan says what makes its times doubtful") {
  TableFixture f;
  const AssumedRates quick;
  Json machine;
  machine["noisy"] = false;
  const auto text = [&](int64_t last) {
    const CostTable flat = flat_table(1e-3);
    std::vector<CostEntry> entries = flat.entries();
    for (CostEntry& entry : entries) entry.units = {last};
    make_directory(f.dir / "tables");
    write_cost_table(table_path(f.dir / "tables", "host"), {std::move(entries), {}},
                     {"host", machine, 1});
    return plan_of(f.with("run", "tables")).text;
  };
  const std::string noise = "\nhost: the machine was noisy when these times were measured";
  const std::string sizes = "\nhost: the step is far above the largest sizes of its cost table";
  CHECK_FALSE(has_line(text(1 << 20), noise));
  CHECK_FALSE(has_line(text(1 << 20), sizes));
  machine["noisy"] = true;
  CHECK(has_line(text(1 << 20), noise));
  // The tokens of a micro-batch; of experts, of a call. Parameters do grow in proportion.
  const TrainConfig config = f.with("run", "tables");
  const int64_t tokens = config.seq_len * config.micro_batch;
  CHECK_FALSE(has_line(text((tokens + 3) / 4), sizes));
  const std::string far = text(1);
  CHECK(has_line(far, sizes));
  CHECK(has_line(far, "head (1, the step has "));
  CHECK(has_line(far, "experts (1, the step has "));
  CHECK_FALSE(has_line(far, "update ("));
}

TEST_CASE("run tables: a table in the cache keeps entries of other cores and types") {
  const auto table = [](std::initializer_list<std::pair<Compute, int64_t>> parts, double seconds) {
    const CostTable flat = flat_table(seconds);
    std::vector<CostEntry> entries;
    for (const auto& [dtype, cores] : parts) {
      for (CostEntry entry : flat.entries()) {
        entry.dtype = dtype;
        entry.cores = cores;
        entries.push_back(std::move(entry));
      }
    }
    return CostTable(std::move(entries), {});
  };
  const auto origin = [](double made, double spread) {
    CostTableOrigin of{"host", JsonObject{{"identity", "0123"}}, made};
    set_spread(of, spread);
    return of;
  };
  const auto seconds = [](const CostTableFile& file, Compute dtype, int64_t cores) {
    const CostEntry* entry =
        file.table.find(TaskKind::head, Phase::forward, dtype, cores, CostShape{8, 8});
    REQUIRE(entry != nullptr);
    CHECK(entry->cores == cores);
    return entry->seconds.front();
  };
  const CostTableFile all{table({{Compute::f32, 2}, {Compute::f32, 1}, {Compute::bf16, 2}}, 1),
                          origin(100, .3)};
  const CostTableFile one{table({{Compute::f32, 1}}, 2), origin(200, .05)};
  const CostTableFile both = with_kept_entries(one, all);
  CHECK(seconds(both, Compute::f32, 1) == 2);
  CHECK(seconds(both, Compute::f32, 2) == 1);
  CHECK(seconds(both, Compute::bf16, 2) == 1);
  // Each part has its own age and noise, also after another table, and in the file.
  const CostTableFile third =
      with_kept_entries({table({{Compute::bf16, 2}}, 3), origin(300, .01)}, both);
  const CostTableFile read =
      parse_cost_table_file(cost_table_json(third.table, third.origin).dump(), "host.json");
  const auto made = [&](Compute dtype, int64_t cores) {
    return origin_of(read.origin, dtype, cores).made.as_double();
  };
  CHECK(made(Compute::bf16, 2) == 300);
  CHECK(made(Compute::f32, 1) == 200);
  CHECK(made(Compute::f32, 2) == 100);
  CHECK(is_noisy(origin_of(read.origin, Compute::f32, 2)));
  CHECK_FALSE(is_noisy(origin_of(read.origin, Compute::f32, 1)));
  CHECK_FALSE(is_noisy(read.origin));
  // What measures all again keeps nothing.
  const CostTableFile again = with_kept_entries(all, third);
  CHECK(again.table.digest() == all.table.digest());
  CHECK(again.origin.machine.find("kept") == nullptr);
}

TEST_CASE("run tables: a record reads back, and damage is a storage error") {
  RunTables tables;
  tables.by_place["host"] = {std::make_shared<const CostTable>(flat_table(1.1e-3)),
                             {"host", "a test", 5},
                             TableSource::cache,
                             false};
  tables.best = MachineRates{1.5e9, 2.5e8};
  const Json record = tables_record(tables);
  const RunTables back = tables_in(record, "manifest.json");
  REQUIRE(back.find("host") != nullptr);
  CHECK(back.find("host")->table->digest() == tables.find("host")->table->digest());
  CHECK(back.find("host")->source == TableSource::cache);
  CHECK(back.find("host")->saved);
  CHECK(back.best->flops_per_s == 1.5e9);
  CHECK(back.best->update_params_per_s == 2.5e8);
  CHECK(tables_record(back).dump() == record.dump());

  const std::string text = record.dump();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string damaged = text;
    REQUIRE(damaged.find(from) != std::string::npos);
    damaged.replace(damaged.find(from), from.size(), to);
    const auto raised =
        raised_by([&] { tables_in(parse_json(damaged, "record"), "manifest.json"); });
    INFO(damaged.substr(0, 80) << " " << raised.message);
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says("manifest.json: costs: "));
    CHECK_FALSE(raised.says("\n"));
  };
  refused(R"("source": "cache")", R"("source": "guess")");
  refused(R"("digest":)", R"("digst":)");
  refused("0.0011", "0.0012");  // another digest
  refused(R"("kind": "attention")", R"("kind": "attentive")");
  refused(R"("flops_per_s":)", R"("flops_per_s":"1","flops":)");
  refused(R"("tables":)", R"("table":)");
}

TEST_CASE("run tables: the table that paces a place may not change on a resume") {
  TableFixture f;
  const AssumedRates quick;
  f.give("paces", "host", 1e-5);
  TrainConfig config = f.with("run", "", "host:costs=" + table_path(f.dir / "paces", "host"));
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);
  CHECK(f.plan_of_run("run").find("costs")->find("host")->find("source")->as_string() == "paced");
  f.give("paces", "host", 2e-5);
  const auto raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("paces host changed"));
  config.allow_change = {"devices"};
  CHECK(f.run(config) == ExitCode::done);
}

}  // namespace
}  // namespace hearth::test
