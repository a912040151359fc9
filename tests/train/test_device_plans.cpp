// Plans of several devices and NUMA nodes: memory of each place beside what a run measured, refusals
// that name the device that is short, and what more memory changes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <sstream>

#include "base/sanitized.h"
#include "base/system.h"
#include "budget/needed_memory.h"
#include "budget/placement_report.h"
#include "budget/plan_report.h"
#include "support/has.h"
#include "support/spelled_as_flags.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

/// Sets of devices and nodes whose plans differ. Two nodes need two cores.
std::vector<RunsOn> sets() {
  const int two = std::min(2, cores_here());
  return {{.devices = 2},
          {.devices = 4},
          {.devices = 2, .host = "host"},
          {.devices = 3, .host = "host", .nodes = two},
          {.devices = 2, .nodes = two},
          {.host = "host", .nodes = two}};
}

bool within_a_percent(double a, double b) { return std::abs(a - b) <= 0.01 * std::max(a, b); }

TEST_CASE("device plans: every place takes the memory that was planned, line by line") {
  limit_allocator();  // as the program does: else glibc keeps large blocks in the heap once one was freed
  SameBitsFixture f;
  int runs = 0;
  for (const TrainedWith& with :
       {TrainedWith{"qwen3_moe", {}}, TrainedWith{"qwen2_moe", 0.0, ComputeChoice::bf16}}) {
    for (const RunsOn& on : sets()) {
      const EmulatedNodes nodes(on.nodes);
      INFO(text_of(with, on));
      const std::string out = "measured" + std::to_string(runs++);
      TrainConfig config = f.config_of(with, out);
      config.devices = device_list(on);
      REQUIRE(f.run(config) == ExitCode::done);
      const Json plan = parse_json(read_file(f.dir / (out + "/plan.json")), "plan.json");
      const JsonArray& places = plan.find("memory")->as_array();
      REQUIRE(places.size() == static_cast<size_t>(on.devices + on.nodes));
      for (size_t at = 0; at < places.size(); ++at) {
        INFO(places[at].dump());
        const double peak = places[at].find("peak_bytes")->as_double();
        const double measured = places[at].find("measured_peak_bytes")->as_double();
        if (at == 0) {
          if (!kSanitized) CHECK(measured <= 1.01 * peak);  // a sanitizer keeps freed memory
        } else {
          CHECK(within_a_percent(measured, peak));
        }
        for (const Json& line : places[at].find("lines")->as_array()) {
          INFO(line.dump());
          REQUIRE(line.find("measured") != nullptr);
          const std::string& name = line.find("name")->as_string();
          const bool arena = name.ends_with("weights") || name.ends_with("moments") ||
                             name == "gradients" || name.starts_with("activations") ||
                             name.starts_with("scratch") || name.starts_with("memory of ");
          if (at > 0 || arena) {
            CHECK(within_a_percent(line.find("measured")->as_double(),
                                   line.find("bytes")->as_double()));
          }
        }
      }
    }
  }
}

/// A plan and what it needs, without advice.
struct Planned {
  std::optional<Place> short_place;
  std::vector<uint64_t> needed;  // of the devices
  TrainSchedule train;
};
Planned planned(const TrainConfig& config) {
  unbind_thread();
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  Planned result;
  result.short_place = run.model.plan.short_place();
  if (result.short_place) {
    const auto needed = needed_memory(subject_of(run.model), run.request);
    result.needed = {needed.begin() + run.opened->devices.hosts, needed.end()};
  }
  result.train = *run.model.plan.train;
  return result;
}

/// Devices that are all too small, alone or together, and what the plan says that they need.
void check_least_memory(SameBitsFixture& f, const TrainedWith& with, const RunsOn& on,
                        Recompute recompute) {
  const EmulatedNodes nodes(on.nodes);
  INFO(text_of(with, on));
  TrainConfig config = f.config_of(with, "x");
  config.recompute = recompute;
  const auto devices = static_cast<size_t>(on.devices);
  const auto plan_with = [&](const std::vector<uint64_t>& memory) {
    config.devices = device_list(on, memory);
    return planned(config);
  };
  const std::vector<uint64_t> needed = plan_with(std::vector<uint64_t>(devices, 4096)).needed;
  REQUIRE(needed.size() == devices);
  CHECK_FALSE(plan_with(needed).short_place);
  for (size_t d = 0; d < devices; ++d) {
    INFO("virtual:" << d << " needs " << needed[d]);
    if (needed[d] == 4096 && with.family == "tied") continue;  // left idle, as below
    std::vector<uint64_t> less = needed;
    less[d] = less[d] * 97 / 100;
    CHECK(plan_with(less).short_place.has_value());
  }
  // One alone is short: the others have no limit.
  for (size_t d = 0; d < devices; ++d) {
    std::vector<uint64_t> memory(devices, uint64_t{1} << 40);
    memory[d] = 4096;
    const Planned small = plan_with(memory);
    const auto at = small.short_place;
    if (!at && with.family == "tied") continue;  // left idle: a tied embedding is with the head
    REQUIRE(at);
    REQUIRE(*at == static_cast<Place>(on.nodes + static_cast<int>(d)));
    memory[d] = small.needed[d];
    INFO("virtual:" << d << " alone needs " << memory[d]);
    CHECK(memory[d] <= needed[d] + needed[d] / 256);  // the steps of the search
    CHECK_FALSE(plan_with(memory).short_place);
    memory[d] = memory[d] * 97 / 100;
    const auto then = plan_with(memory).short_place;
    CHECK(then.value_or(-1) == *at);
  }
}

TEST_CASE("device plans: what a device needs is accepted, and 3 % less is not") {
  SameBitsFixture f;
  check_least_memory(f, {"qwen3_moe"}, {.devices = 2}, Recompute::automatic);
  if (kSanitized) return;  // plans are searched for minutes
  check_least_memory(f, {"tied"}, {.devices = 3}, Recompute::none);
  check_least_memory(f, {"mixtral", 0.0, ComputeChoice::bf16}, {.devices = 2, .host = "host"},
                     Recompute::automatic);
  // Experts that the first two devices could hold change what the last one needs.
  check_least_memory(f, {"olmoe"},
                     {.devices = 3, .host = "host", .nodes = std::min(2, cores_here())},
                     Recompute::blocks);
}

/// What a refusal names for devices of too little memory, which the plan then accepts.
std::vector<uint64_t> accepted_needs(TrainConfig config, const std::vector<uint64_t>& memory) {
  const auto devices = static_cast<int>(memory.size());
  config.devices = device_list({.devices = devices}, memory);
  const Planned small = planned(config);
  REQUIRE(small.short_place);
  config.devices = device_list({.devices = devices}, small.needed);
  INFO(config.devices);
  CHECK_FALSE(planned(config).short_place);
  return small.needed;
}

TEST_CASE("device plans: several devices that are short, and what is named for them") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({"olmoe"}, "x");
  std::vector<uint64_t> memory{4096, 4096, 4096};
  for (int i = 0; i < 2; ++i) {  // far too little, then nearly enough
    const std::vector<uint64_t> needed = accepted_needs(config, memory);
    for (size_t d = 0; d < memory.size(); ++d) memory[d] = needed[d] * 9 / 10;
    if (kSanitized) return;
  }
}

TEST_CASE("device plans: one device is named only if several do not need less in all") {
  if (kSanitized) SKIP("plans are searched for a minute");
  SameBitsFixture f;
  TrainConfig config = f.config_of({"olmoe"}, "x");
  const std::vector<uint64_t> together = accepted_needs(config, {4096, 4096});
  // Both lack a little. One alone would have to take a layer more.
  std::vector<uint64_t> memory{together[0] * 95 / 100, together[1] * 95 / 100};
  std::vector<uint64_t> named = accepted_needs(config, memory);
  CHECK(named[0] > memory[0]);
  CHECK(named[1] > memory[1]);
  const uint64_t raise = named[0] - memory[0] + named[1] - memory[1];
  for (const size_t alone : {0, 1}) {
    std::vector<uint64_t> one = memory;
    one[alone] += raise * 9 / 10;
    config.devices = device_list({.devices = 2}, one);
    CHECK(planned(config).short_place);
  }
  // The first has what it needs.
  memory[0] = together[0] * 101 / 100;
  named = accepted_needs(config, memory);
  CHECK(named[0] == memory[0]);
  CHECK(named[1] > memory[1]);
}

TEST_CASE("device plans: several devices need no more than the planned cut lacks") {
  if (kSanitized) SKIP("plans are searched for a minute");
  SameBitsFixture f;
  TrainConfig config = f.config_of({"olmoe"}, "x");
  for (const std::vector<uint64_t>& memory :
       {std::vector<uint64_t>{4096, 4096}, {40223, 366566}, {12175, 156606, 26830}}) {
    const std::vector<uint64_t> needed = accepted_needs(config, memory);
    config.devices = device_list({.devices = static_cast<int>(memory.size())}, memory);
    const JsonArray places = plan_of(config).json.find("memory")->as_array();
    std::vector<uint64_t> peaks;
    uint64_t lacks = 0, raise = 0;
    for (size_t d = 0; d < memory.size(); ++d) {
      peaks.push_back(std::max(places[1 + d].find("peak_bytes")->as_uint(), memory[d]));
      lacks += peaks[d] - memory[d];
      raise += needed[d] - memory[d];
    }
    config.devices = device_list({.devices = static_cast<int>(memory.size())}, peaks);
    INFO(config.devices);
    CHECK_FALSE(planned(config).short_place);
    CHECK(raise <= lacks);
  }
}

TEST_CASE("device plans: what devices need, for every family and set", "[.long]") {
  SameBitsFixture f;
  for (const std::string& family : kFamilies) {
    for (const std::optional<double> dropout : {std::optional<double>(), std::optional(0.2)}) {
      for (const RunsOn& on : sets()) {
        if (on.devices == 0) continue;
        for (const Recompute recompute : {Recompute::none, Recompute::blocks}) {
          check_least_memory(f, {family, dropout}, on, recompute);
        }
      }
    }
  }
}

TEST_CASE("device plans: a refusal names the device that is short, and what it needs") {
  const SpelledAsFlags flags;
  SameBitsFixture f;
  TrainConfig config = f.config_of({"qwen3_moe"}, "run");
  config.devices = "virtual,virtual:mem=64Ki,virtual";
  const PlanReport report = plan_of(config);
  REQUIRE_FALSE(report.fits);
  INFO(report.refusal);
  CHECK(has(report.refusal, "of the memory of virtual:1, but may use only 65.54 kB"));
  CHECK_FALSE(has(report.refusal, "virtual:0"));
  CHECK_FALSE(has(report.refusal, "virtual:2"));
  CHECK(has(report.refusal, "--devices virtual,virtual:mem="));
  if (kSanitized) return;  // each plan is searched for 20 seconds
  const Raised refused = raised_by([&] { f.run(config); });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.message == report.refusal);
  const int64_t needed = report.json.find("needed_bytes")->as_int();
  const auto fits_with = [&](int64_t bytes) {
    config.devices = "virtual,virtual:mem=" + std::to_string(bytes) + ",virtual";
    return plan_of(config).fits;
  };
  CHECK(fits_with(needed));
  CHECK_FALSE(fits_with(needed * 97 / 100));
}

TEST_CASE("device plans: a refusal names first the device that has to change") {
  const SpelledAsFlags flags;
  SameBitsFixture f;
  TrainConfig config = f.config_of({"qwen3_moe"}, "run");
  config.grad_accum = 4;
  config.devices = "4xvirtual,host";
  const JsonArray memory = plan_of(config).json.find("memory")->as_array();
  std::vector<uint64_t> peaks;
  for (size_t at = memory.size() - 4; at < memory.size(); ++at) {
    peaks.push_back(memory[at].find("peak_bytes")->as_uint());
  }
  const uint64_t most = *std::ranges::max_element(peaks);
  size_t refused = 0;
  for (const uint64_t first : {most / 4, most / 2, most * 3 / 4, most, most * 5 / 4}) {
    if (kSanitized && refused > 0) break;
    config.devices = "virtual:mem=" + std::to_string(first) + ",3xvirtual:mem=10000,host";
    const PlanReport report = plan_of(config);
    if (report.fits) continue;
    ++refused;
    INFO(report.refusal);
    const std::string before = "the memory of ";
    const size_t at = report.refusal.find(before);
    REQUIRE(at != std::string::npos);
    const size_t begin = at + before.size();
    const std::string named = report.refusal.substr(begin, report.refusal.find(',', begin) - begin);
    INFO(named);
    // What follows says which devices need more.
    CHECK((has(report.refusal, "if " + named + " has it") ||
           has(report.refusal, "if " + named + " and ")));
    const auto needed = static_cast<uint64_t>(report.json.find("needed_bytes")->as_int());
    CHECK(needed > (named == "virtual:0" ? first : 10000));
  }
  CHECK(refused > 0);
}

TEST_CASE("device plans: more memory never makes a plan worse") {
  SameBitsFixture f;
  for (const RunsOn& on : {RunsOn{.devices = 2}, RunsOn{.devices = 3, .host = "host"}}) {
    TrainConfig config = f.config_of({"qwen3_moe"}, "x");
    config.grad_accum = 4;
    const auto devices = static_cast<size_t>(on.devices);
    config.devices = device_list(on, std::vector<uint64_t>(devices, 4096));
    const std::vector<uint64_t> needed = planned(config).needed;
    bool fits = false;
    TrainSchedule last;
    for (int percent = 80; percent <= 300; percent += kSanitized ? 55 : percent < 130 ? 5 : 17) {
      std::vector<uint64_t> memory = needed;
      for (uint64_t& bytes : memory) bytes = bytes * static_cast<uint64_t>(percent) / 100;
      config.devices = device_list(on, memory);
      INFO(config.devices << ", " << percent << " %");
      const Planned plan = planned(config);
      fits = !plan.short_place;
      CHECK(fits == (percent >= 100));
      // The longest chain of passes, recomputed ones among them, gets no longer; but by the few
      // percent in which cuts with an equal slowest stage differ.
      if (last.span > 0 && fits) CHECK(plan.train.span <= last.span * 1.05);
      if (last.span > 0 && fits && !last.recompute) CHECK(plan.train.group >= last.group);
      if (fits) last = plan.train;
    }
    CHECK(fits);
    CHECK_FALSE(last.recompute);
    CHECK(last.group == 4);
    if (kSanitized) break;
  }
}

TEST_CASE("device plans: a listed node computes with its own cores") {
  if (cores_here() < 2) SKIP("one core");
  SameBitsFixture f;
  const EmulatedNodes nodes(2);
  unbind_thread();
  const Topology topology = detect_topology();
  TrainConfig config = f.config_of({}, "x");
  for (const int node : {0, 1}) {
    const std::vector<int> cpus = topology.worker_cpus_of_node(node);
    config.devices = "host:" + std::to_string(node);
    config.threads = 0;  // one per core
    CHECK(open_model(config)->cores == cpus);
    CHECK(open_model(config)->workers == static_cast<int>(cpus.size()));
    config.threads = 1;
    CHECK(open_model(config)->cores == std::vector<int>{cpus.front()});
    config.threads = static_cast<int>(cpus.size()) + 1;  // more than cores: they share
    CHECK(open_model(config)->workers == config.threads);
    CHECK(open_model(config)->cores.empty());
  }
}

/// The journal's events `placement` of a run: "DEVICE STAGE LAYERS NODES HOLDS".
std::vector<std::string> placements_of(const SameBitsFixture& f, const std::string& out) {
  std::vector<std::string> lines;
  std::istringstream in(read_file(f.dir / (out + "/journal.jsonl")));
  for (std::string line; std::getline(in, line);) {
    const Json event = parse_json(line, "journal.jsonl");
    if (event.find("event")->as_string() != "placement") continue;
    const Json* const holds = event.find("holds");
    std::string& text = lines.emplace_back(event.find("device")->as_string());
    for (const char* key : {"stage", "layers", "nodes"}) text += " " + event.find(key)->dump();
    if (holds != nullptr) text += " " + holds->as_string();
  }
  return lines;
}

TEST_CASE("device plans: the journal has a placement of every place") {
  if (cores_here() < 2) SKIP("one core");
  SameBitsFixture f;
  const EmulatedNodes nodes(2);
  unbind_thread();
  const auto placements = [&](const std::string& devices, const std::string& out) {
    TrainConfig config = f.config_of({"qwen3_moe"}, out);  // layer 1 has no experts
    config.devices = devices;
    REQUIRE(f.run(config) == ExitCode::done);
    return placements_of(f, out);
  };
  using Lines = std::vector<std::string>;
  CHECK(placements("host", "a") == Lines{"host 0 [0, 2] [0]", "host:1 null [0, 2] [1] experts"});
  CHECK(placements("host:1", "b") == Lines{"host 0 [0, 2] [1]"});
  CHECK(placements("virtual:mem=1Gi", "c") == Lines{"virtual:0 0 [0, 2] []"});
}

TEST_CASE("device plans: a node that has nothing of the run is not printed") {
  if (cores_here() < 2) SKIP("one core");
  SameBitsFixture f;
  const EmulatedNodes nodes(2);
  unbind_thread();
  const auto prints_node = [&](const std::string& devices) {
    TrainConfig config = f.config_of({"qwen3_moe"}, "x");
    config.devices = devices;
    RecordingReporter reporter;
    const PlannedRun run(config, open_model(config), reporter);
    const std::string text = plan_text(run.model, run.times, PlanDetail::summary, "", 0);
    return text.find("memory of host:1") != text.npos;
  };
  CHECK(prints_node("host"));
  CHECK_FALSE(prints_node("virtual:mem=1Gi"));
}

TEST_CASE("device plans: a listed node has its own memory, unless --cpu-memory says how much") {
  if (cores_here() < 2) SKIP("one core");
  SameBitsFixture f;
  const EmulatedNodes nodes(2);
  unbind_thread();
  const Topology topology = detect_topology();
  TrainConfig config = f.config_of({}, "x");
  const auto host_budget = [&](const std::string& devices) {
    config.devices = devices;
    return open_model(config)->place(kHostPlace).budget.bytes;
  };
  config.cpu_memory = 0;
  CHECK(host_budget("host:1") == topology.nodes.at(1).memory);
  CHECK(host_budget("host:0,host:1") == topology.nodes[0].memory + topology.nodes[1].memory);
  CHECK(host_budget("host") == topology.total_memory);
  config.cpu_memory = topology.total_memory;
  CHECK(host_budget("host:1") == topology.total_memory);
}

TEST_CASE("device plans: a device with nothing to do is named") {
  SameBitsFixture f;
  const auto first_stage = [&](const std::string& family, const std::string& devices) {
    TrainConfig config = f.config_of({family}, "x");
    config.devices = devices;
    unbind_thread();
    RecordingReporter reporter;
    return stage_lines(PlannedRun(config, open_model(config), reporter).model).front();
  };
  // No layer fits, and the tied embedding is with the head.
  CHECK(first_stage("tied", "virtual:mem=4096,2xvirtual") ==
        "stage 0 on virtual:0: nothing, as the embedding is with the head; the device may be left "
        "out");
  CHECK(first_stage("tied", "3xvirtual") == "stage 0 on virtual:0: embedding, layer 0");
  CHECK(first_stage("olmoe", "5xvirtual") == "stage 0 on virtual:0: embedding");
}

TEST_CASE("device plans: a plan file runs on the devices that it was made for") {
  SameBitsFixture f;
  const TrainedWith with{"qwen2_moe"};
  const int two = std::min(2, cores_here());
  for (const RunsOn& on :
       {RunsOn{.devices = 2, .host = "host", .nodes = two}, RunsOn{.devices = 3}}) {
    const EmulatedNodes nodes(on.nodes);
    const std::string out = "by-plan" + std::to_string(on.devices);
    TrainConfig config = f.config_of(with, out);
    config.devices = device_list(on);
    unbind_thread();
    const PlanReport report = plan_of(config);
    REQUIRE(report.fits);
    f.write(f.dir / "plan.json", report.json.dump());
    config.plan_file = f.dir / "plan.json";
    REQUIRE(f.run(config) == ExitCode::done);
    CHECK(f.root(out) == f.on_host(with).root);
    config.out = f.dir / "elsewhere";
    config.devices = device_list({.devices = on.devices + 1, .host = on.host, .nodes = on.nodes});
    const Raised refused = raised_by([&] { f.run(config); });
    INFO(refused.message);
    CHECK(refused.code == ExitCode::usage);
    CHECK(refused.says("devices"));
  }
}

}  // namespace
}  // namespace hearth::test
