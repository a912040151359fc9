// The bits of a run do not depend on where it runs: on how many devices, with the experts there or on
// the host's NUMA nodes, with how much memory. All equal the run on one host.
#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "base/random.h"
#include "base/sanitized.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

const std::vector<TrainedWith>& trainings() {
  static const std::vector<TrainedWith> all = [] {
    std::vector<TrainedWith> list;
    for (const std::string& family : kFamilies) {
      for (const std::optional<double> dropout :
           {std::optional<double>(), std::optional(0.0), std::optional(0.2)}) {
        for (const ComputeChoice compute : {ComputeChoice::f32, ComputeChoice::bf16}) {
          list.push_back({family, dropout, compute});
        }
      }
    }
    return list;
  }();
  return all;
}

/// Every set of devices, nodes and experts on the host. Two nodes need two cores.
std::vector<RunsOn> device_sets() {
  std::vector<RunsOn> sets;
  for (const int nodes : {1, 2}) {
    if (nodes > cores_here()) continue;
    for (int devices = 0; devices <= 4; ++devices) {
      for (const std::string host : {"", "host", "host:1"}) {
        if (nodes == 1 && host == "host:1") continue;
        if (nodes == 1 && devices == 0) continue;  // what all others are compared with
        if (devices == 0 && host.empty()) continue;
        sets.push_back({.devices = devices, .host = host, .nodes = nodes});
      }
    }
  }
  return sets;
}

constexpr Recompute kRecompute[] = {Recompute::none, Recompute::blocks, Recompute::automatic};
constexpr std::optional<int64_t> kGroups[] = {std::nullopt, 1, 2, 3};

uint64_t seed_of_sample() {
  const char* given = std::getenv("HEARTH_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 23;
}

// Trainings and sets of devices come up in turn; what else varies is drawn. The sample stops after a
// minute and a half, so that a slow machine does not take minutes. HEARTH_SEED draws another one.
TEST_CASE("same bits: a sample of devices, nodes, memory, recompute and groups") {
  SameBitsFixture f;
  const uint64_t seed = seed_of_sample();
  INFO("HEARTH_SEED=" << seed);
  const Random random(seed, RandomSite::shuffle, 23);
  uint64_t draw = 0;
  const auto below = [&](size_t n) { return static_cast<size_t>(random.below(draw++, n)); };
  const std::vector<RunsOn> sets = device_sets();
  const size_t first_training = below(trainings().size()), first_set = below(sets.size());
  const auto begin = std::chrono::steady_clock::now();
  const size_t cases = kSanitized ? 4 : 44;
  size_t done = 0;
  for (; done < cases; ++done) {
    const TrainedWith& with = trainings()[(first_training + done) % trainings().size()];
    RunsOn on = sets[(first_set + done) % sets.size()];
    on.recompute = kRecompute[below(std::size(kRecompute))];
    if (below(2) == 0) on.group = kGroups[below(std::size(kGroups))];
    on.least = !on.group && below(2) == 0;
    if (below(3) == 0) on.inputs_on_host = true;
    const size_t policy = below(6);
    if (on.devices > 0 && policy < 2) {
      on.policy = policy == 0 ? "gpipe-offload" : "mobius";
    } else if (on.devices > 0 && policy == 3) {
      on.policy = "roundpipe";
      if (on.recompute == Recompute::none) on.recompute = Recompute::automatic;
    } else if (on.devices > 0 && !on.host.empty() && policy == 4) {
      on.policy = "aptmoe";
    } else if (on.devices > 0 && on.host == "host" && policy == 5) {
      on.by_times = true;
    } else if (on.devices > 0 && !on.host.empty() && policy == 2) {
      on.least = false;
      on.hot = 1 + static_cast<int>(below(8));
    }
    INFO(text_of(with, on));
    const RunBits& expected = f.on_host(with);
    REQUIRE(expected.steps.size() == 3);
    CHECK(f.run_on(with, on) == expected);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (taken.count() > 90 && done >= 12) break;
  }
  CHECK(done >= std::min<size_t>(cases, 12));
}

TEST_CASE("same bits: experts that tokens divide between devices and the host") {
  SameBitsFixture f;
  size_t turn = 0;
  for (const TrainedWith& with : trainings()) {
    if (kSanitized && turn++ % 17 != 0) continue;
    for (const int devices : {1, 2}) {
      RunsOn on{.devices = devices, .host = "host"};
      on.policy = "aptmoe";
      on.least = turn++ % 2 == 0;
      on.recompute = kRecompute[turn % std::size(kRecompute)];
      INFO(text_of(with, on));
      CHECK(f.run_on(with, on) == f.on_host(with));
    }
  }
}

TEST_CASE("same bits: stages go round the devices, each direction with its cut") {
  SameBitsFixture f;
  size_t turn = 0;
  for (const TrainedWith& with : trainings()) {
    if (kSanitized && turn++ % 13 != 0) continue;
    RunsOn on{.devices = 1 + static_cast<int>(turn % 4), .policy = "roundpipe"};
    on.group = kGroups[turn % std::size(kGroups)];
    on.least = !on.group;
    on.inputs_on_host = turn++ % 3 == 0;
    INFO(text_of(with, on));
    CHECK(f.run_on(with, on) == f.on_host(with));
  }
}

TEST_CASE("same bits: what the default policy becomes") {
  SameBitsFixture f;
  f.assumed.reset();  // without rates of links, all loads are free
  size_t turn = 0;
  for (const TrainedWith& with : trainings()) {
    if (kSanitized && turn++ % 17 != 0) continue;
    RunsOn on{.devices = 1 + static_cast<int>(turn % 2), .host = "host", .by_times = true};
    on.least = turn++ % 3 != 0;
    on.recompute = kRecompute[turn % std::size(kRecompute)];
    INFO(text_of(with, on));
    CHECK(f.run_on(with, on) == f.on_host(with));
  }
}

TEST_CASE("same bits: every training on every set of devices", "[.long]") {
  SameBitsFixture f;
  size_t turn = 0;
  for (const TrainedWith& with : trainings()) {
    const RunBits& expected = f.on_host(with);
    REQUIRE(expected.steps.size() == 3);
    for (RunsOn on : device_sets()) {
      for (const Recompute recompute : kRecompute) {
        on.recompute = recompute;
        on.group = kGroups[turn++ % std::size(kGroups)];
        on.least = false;
        INFO(text_of(with, on));
        CHECK(f.run_on(with, on) == expected);
        if (on.devices == 0) continue;
        on.group = {};
        on.least = true;
        INFO(text_of(with, on));
        CHECK(f.run_on(with, on) == expected);
        on.policy = turn % 2 == 0 ? "gpipe-offload" : "mobius";
        INFO(text_of(with, on));
        CHECK(f.run_on(with, on) == expected);
        if (recompute != Recompute::none) {
          on.policy = "roundpipe";
          INFO(text_of(with, on));
          CHECK(f.run_on(with, on) == expected);
        }
        on.policy.clear();
        if (on.host.empty()) continue;
        on.policy = "aptmoe";
        INFO(text_of(with, on));
        CHECK(f.run_on(with, on) == expected);
        on.policy.clear();
        on.least = false;
        on.hot = 1 + static_cast<int>(turn % 8);
        INFO(text_of(with, on));
        CHECK(f.run_on(with, on) == expected);
      }
    }
  }
}

TEST_CASE("same bits: evaluation and generation on several devices and nodes") {
  SameBitsFixture f;
  for (const std::string family : {"qwen3_moe", "qwen2_moe"}) {
    GenerateConfig config;
    config.model = f.dir / family;
    config.data = {f.dir / "rows.jsonl"};
    config.seq_len = 64;
    config.threads = 2;
    config.data_cache = 0;
    config.prompt = "What is 3?";
    config.max_new_tokens = 12;
    const auto results = [&](const RunsOn& on) {
      const EmulatedNodes nodes(on.nodes);
      unbind_thread();
      RecordingReporter reporter;
      config.devices = device_list(on);
      std::string text = evaluate(config, reporter).dump();
      for (const bool cached : {true, false}) {
        unbind_thread();
        config.kv_cache = cached;
        text += generate(config, reporter, [](const std::string&) {}).text;
      }
      return text;
    };
    const std::string on_host = results({});
    REQUIRE(on_host.find("loss") != std::string::npos);
    for (const RunsOn& on : device_sets()) {
      INFO(family << " on " << device_list(on) << ", " << on.nodes << " nodes");
      CHECK(results(on) == on_host);
    }
    if (kSanitized) break;
  }
}

TEST_CASE("same bits: a run goes on from one set of devices to another") {
  SameBitsFixture f;
  const int two = std::min(2, cores_here());
  const std::vector<RunsOn> path = {{.devices = 2},
                                    {.devices = 4, .host = "host", .nodes = two},
                                    {.host = "host", .nodes = two},
                                    {.devices = 3, .least = true},
                                    {}};
  for (const TrainedWith& with :
       {TrainedWith{"qwen2_moe", {}, ComputeChoice::bf16}, TrainedWith{"qwen3_moe", 0.2}}) {
    TrainConfig whole = f.config_of(with, "whole" + with.family);
    whole.steps = static_cast<int64_t>(path.size());
    REQUIRE(f.run(whole) == ExitCode::done);
    TrainConfig parts = whole;
    parts.out = f.dir / ("parts" + with.family);
    for (size_t i = 0; i < path.size(); ++i) {
      const EmulatedNodes nodes(path[i].nodes);
      parts.devices = f.list_of(parts, path[i]);
      parts.recorded = whole.recorded;
      parts.recorded.push_back({"devices", parts.devices, false});
      INFO(text_of(with, path[i]) << ": " << parts.devices);
      // Without leave it is refused, and the line says how to allow it.
      parts.allow_change.clear();
      if (i > 0) {
        const Raised refused = raised_by([&] { f.run(parts); });
        INFO(refused.message);
        CHECK(refused.code == ExitCode::usage);
        CHECK(refused.says("--allow-change devices"));
      }
      parts.allow_change = {"devices"};
      const bool last = i + 1 == path.size();
      REQUIRE((last ? f.run(parts) : f.run_until(parts, static_cast<int64_t>(i) + 1)) ==
              (last ? ExitCode::done : ExitCode::stopped));
    }
    CHECK(f.root("parts" + with.family) == f.root("whole" + with.family));
    CHECK(f.result("parts" + with.family) == f.result("whole" + with.family));
    if (kSanitized) break;
  }
}

}  // namespace
}  // namespace hearth::test
