// --policy static: devices hold the experts that a sample of the data uses most, as many as fit.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "budget/hot_placement.h"
#include "support/has.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

using Experts = std::set<std::pair<int32_t, int32_t>>;

/// The experts at a place.
Experts experts_at(const PlacedModel& model, Place place) {
  Experts experts;
  for (const Block& block : model.table.blocks()) {
    if (block.kind == BlockKind::expert && block.place == place) {
      experts.emplace(block.layer, block.expert);
    }
  }
  return experts;
}

struct Planned {
  RecordingReporter reporter;
  PlannedRun run;
  Planned(const SameBitsFixture& f, const TrainConfig& config, Planning planning = Planning::run)
      : run(config, (static_cast<void>(f), unbind_thread(), open_model(config)), reporter,
            planning) {}
};

bool counts_a_sample(const Planned& planned) {
  return std::ranges::any_of(planned.reporter.notes, [](const std::string& note) {
    return has(note, "counting how often each expert is used");
  });
}

/// Static, with memory for so many experts on each of two devices.
TrainConfig static_run(SameBitsFixture& f, const std::string& out, int experts,
                       const TrainedWith& with = {}, int devices = 2) {
  TrainConfig config = f.config_of(with, out);
  config.group = 1;  // so that more memory goes to experts
  config.recompute = Recompute::none;
  config.devices = f.list_of(config, {.devices = devices, .host = "host", .hot = experts});
  config.policy = "static";
  config.recorded.push_back({"policy", "static", false});
  return config;
}

TEST_CASE("hot experts: the most used first, of equals by number and then by layer") {
  ModelSpec spec;
  spec.layers = 3;
  spec.experts = 3;
  spec.moe = {true, false, true};
  const Stage all;
  CHECK(hottest_first(spec, all, {}) ==
        std::vector<LayerExpert>{{0, 0}, {2, 0}, {0, 1}, {2, 1}, {0, 2}, {2, 2}});
  const ExpertCounts counts = {{5, 0, 9}, {}, {9, 5, 7}};
  CHECK(hottest_first(spec, all, counts) ==
        std::vector<LayerExpert>{{2, 0}, {0, 2}, {2, 2}, {0, 0}, {2, 1}, {0, 1}});
  CHECK(hottest_first(spec, {.first = 1, .last = 2}, counts) ==
        std::vector<LayerExpert>{{2, 0}, {2, 2}, {2, 1}});
}

TEST_CASE("static: a device holds the most used experts of its layers, within its memory") {
  SameBitsFixture f;
  for (const TrainedWith& with : {TrainedWith{}, TrainedWith{"qwen2_moe", 0.0}}) {
    size_t held_before = 0;
    for (const int experts : {2, 4}) {
      INFO(with.family << ", " << experts);
      const TrainConfig config = static_run(f, "x", experts, with);
      const Planned planned(f, config);
      const PlacedModel& model = planned.run.model;
      REQUIRE(model.plan.fits());
      REQUIRE(planned.run.sample);
      size_t held = 0;
      for (const Stage& stage : model.placement.stages) {
        const Experts here = experts_at(model, stage.place);
        const auto hot = hottest_first(model.opened->spec, stage, planned.run.sample->counts);
        Experts expected;
        for (size_t i = 0; i < here.size(); ++i) expected.emplace(hot[i].layer, hot[i].expert);
        CHECK(here == expected);
        held += here.size();
        // One more would not fit.
        if (here.size() == hot.size()) continue;
        Placement more = model.placement;
        const LayerExpert& next = hot[here.size()];
        more.homes = homes_of(model.opened->spec, more);
        more.homes[static_cast<size_t>(next.layer)][static_cast<size_t>(next.expert)] = stage.place;
        PlanRequest request = planned.run.request;
        request.group = model.plan.train->group;
        request.recompute = model.plan.train->recompute;
        CHECK_FALSE(plan_with(subject_of(model), more, request)
                        .plan.places[static_cast<size_t>(stage.place)]
                        .fits());
      }
      CHECK(held > held_before);
      held_before = held;
    }
  }
}

TEST_CASE("static: without a limit a device holds all experts, with the least memory none") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.policy = "static";
  config.devices = "virtual,host";
  const Planned all(f, config);
  CHECK(experts_at(all.run.model, kHostPlace).empty());
  CHECK(has(places_text(all.run.model), "experts on virtual:0"));
  CHECK_FALSE(has(places_text(all.run.model), "host"));
  config.devices = f.list_of(config, {.devices = 1, .host = "host", .least = true});
  const Planned none(f, config);
  REQUIRE(none.run.model.plan.fits());
  CHECK(experts_at(none.run.model, 1).empty());
  CHECK(has(places_text(none.run.model), "experts on the host"));
  CHECK(expert_places(none.run.model) == std::vector<Place>{kHostPlace});
}

TEST_CASE("static: a plan without data counts no sample and holds as many") {
  SameBitsFixture f;
  const TrainConfig config = static_run(f, "x", 3);
  const Planned run(f, config), sizes(f, config, Planning::sizes);
  CHECK_FALSE(sizes.run.sample);
  CHECK(counts_a_sample(run));
  for (const Place place : {1, 2}) {
    const auto here = static_cast<int>(experts_at(run.run.model, place).size());
    const auto planned = static_cast<int>(experts_at(sizes.run.model, place).size());
    CHECK(here > 0);
    CHECK(std::abs(here - planned) <= 1);
  }
}

TEST_CASE("static: a resume places by the saved sample, and may take another policy if allowed") {
  SameBitsFixture f;
  const TrainConfig whole = f.config_of({}, "whole");
  REQUIRE(f.run(whole) == ExitCode::done);
  TrainConfig parts = static_run(f, "parts", 3);
  parts.out = f.dir / "parts";
  REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
  const Planned again(f, parts);
  CHECK_FALSE(counts_a_sample(again));
  REQUIRE(again.run.sample);
  CHECK(again.run.sample->tokens > 0);
  REQUIRE(f.run_until(parts, 2) == ExitCode::stopped);
  TrainConfig automatic = parts;
  automatic.policy.clear();
  automatic.recorded = f.config_of({}, "parts").recorded;
  automatic.recorded.push_back({"policy", "auto", false});
  const Raised refused = raised_by([&] { f.run(automatic); });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("--allow-change policy"));
  automatic.allow_change = {"policy"};
  RecordingReporter reporter;
  unbind_thread();
  REQUIRE(train(automatic, reporter) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.result("parts") == f.result("whole"));
  // They are the same bits, and the run says so.
  const auto says = [](const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return has(line, part); });
  };
  CHECK(says(reporter.notes, "policy: static -> auto; the bits stay the same"));
  CHECK_FALSE(says(reporter.warnings, "policy"));
}

TEST_CASE("static: the last lines say where the experts are") {
  SameBitsFixture f;
  RecordingReporter reporter;
  unbind_thread();
  REQUIRE(train(static_run(f, "run", 3), reporter) == ExitCode::done);
  CHECK(std::any_of(reporter.notes.begin(), reporter.notes.end(), [](const std::string& line) {
    return has(line, "experts on virtual:0, virtual:1 and the CPU; ");
  }));
}

TEST_CASE("a pipeline's last lines name all of its devices") {
  SameBitsFixture f;
  RecordingReporter reporter;
  TrainConfig config = f.config_of({}, "run");
  config.devices = "2xvirtual";
  unbind_thread();
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(std::any_of(reporter.notes.begin(), reporter.notes.end(), [](const std::string& line) {
    return has(line, ", experts on virtual:0 and virtual:1; ");
  }));
  const std::string journal = read_file(config.out + "/journal.jsonl");
  CHECK(has(journal, R"("by_path": {"virtual:0": )"));
  CHECK(has(journal, R"(, "virtual:1": )"));
}

TEST_CASE("static: a run that does not fit is refused before its data are counted") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.policy = "static";
  config.devices = "virtual:mem=4096,host";
  RecordingReporter reporter;
  const Raised refused = raised_by([&] {
    unbind_thread();
    train(config, reporter);
  });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("the plan needs"));
  CHECK(std::ranges::none_of(
      reporter.notes, [](const std::string& note) { return has(note, "counting how often"); }));
}

TEST_CASE("static: needs a device and a pipeline") {
  SameBitsFixture f;
  TrainConfig config = f.config_of({}, "x");
  config.policy = "static";
  config.devices = "host";
  const Raised hosts = raised_by([&] { f.run(config); });
  CHECK(hosts.code == ExitCode::usage);
  CHECK(hosts.says("--policy static"));
  CHECK(hosts.says("--devices"));
  for (const char* list : {"virtual", "2xvirtual"}) {
    config.devices = list;
    const Raised none = raised_by([&] { f.run(config); });
    INFO(none.message);
    CHECK(none.code == ExitCode::usage);
    CHECK(none.says("--policy static: --devices '" + std::string(list) + "' does not list host"));
  }
  config.devices = "virtual,host";
  config.parallel = "single";
  const Raised single = raised_by([&] { f.run(config); });
  CHECK(single.code == ExitCode::usage);
  CHECK(single.says("--parallel single: --policy static needs a pipeline"));
}

TEST_CASE("hot experts: metrics say which share of each layer lives on devices") {
  SameBitsFixture f;
  const TrainConfig config = static_run(f, "run", 3);
  const Planned planned(f, config);
  const ParameterTable& table = planned.run.model.table;
  std::vector<double> there(3), all(3);
  for (const Block& block : table.blocks()) {
    if (block.layer < 0) continue;
    double size = 0;
    for (TensorId id = block.begin; id < block.end; ++id) {
      size += static_cast<double>(table.tensor(id).size());
    }
    all[static_cast<size_t>(block.layer)] += size;
    if (block.place >= planned.run.opened->devices.hosts) {
      there[static_cast<size_t>(block.layer)] += size;
    }
  }
  unbind_thread();
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  for (const StepMetrics& m : reporter.steps) {
    REQUIRE(m.residency.size() == 3);
    for (size_t layer = 0; layer < 3; ++layer) {
      CHECK(std::abs(m.residency[layer] - there[layer] / all[layer]) < 1e-9);
    }
  }
  CHECK(reporter.steps[0].residency[0] > 0);
  CHECK(std::ranges::min(reporter.steps[0].residency) < 1);
}

}  // namespace
}  // namespace hearth::test
