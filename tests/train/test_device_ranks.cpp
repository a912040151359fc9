// Several ranks, each with a device of its own: the bits of one rank on the host.
#include <catch2/catch_test_macros.hpp>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "train/least_memory.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

const TrainedWith kBf16{"tied", {}, ComputeChoice::bf16};

using Way = RanksFixture::Way;

/// "peak_bytes" of a place.
int64_t peak_at(const Json& plan, const std::string& place) {
  for (const Json& of : plan.find("memory")->as_array()) {
    if (of.find("place")->as_string() == place) return of.find("peak_bytes")->as_int();
  }
  FAIL("no place " << place);
  return 0;
}

}  // namespace

TEST_CASE("device ranks: with data parallelism\\, the bits of one rank on the host") {
  RanksFixture f;
  f.set_devices("virtual:mem=64M");
  if (kSanitized) return f.check_bits(kLora, 4, {Way{2, "dp"}});
  f.check_bits(kFull, 4, {Way{2, "dp"}, Way{4, "dp"}});
  f.check_bits(kLora, 4, {Way{4, "dp"}});
  f.check_bits(kBf16, 4, {Way{2, "dp"}});
}

TEST_CASE("device ranks: with shared experts\\, the bits of one rank on the host") {
  RanksFixture f;
  f.set_devices("virtual:mem=64M");
  if (kSanitized) return f.check_bits(kLora, 4, {Way{4, "ep", 2}});
  f.check_bits(kFull, 4, {Way{2, "ep", 2}, Way{4, "ep", 4}, Way{4, "ep", 2}});
  f.check_bits(kLora, 4, {Way{4, "ep", 2}});
  f.check_bits(kBf16, 4, {Way{4, "ep", 4}});
}

TEST_CASE("device ranks: with attention and experts apart\\, the bits of one rank on the host") {
  RanksFixture f;
  f.set_devices("virtual:mem=64M");
  if (kSanitized) return f.check_bits(kLora, 4, {Way{3, "zebra", 2}});
  f.check_bits(kFull, 4, {Way{2, "zebra", 1}, Way{4, "zebra", 2}});
  f.check_bits(kLora, 4, {Way{3, "zebra", 2}});
  f.check_bits(kBf16, 4, {Way{4, "zebra", 1}});
}

TEST_CASE("device ranks: more families\\, and shards that are no power of two", "[.long]") {
  RanksFixture f;
  f.set_devices("virtual:mem=64M");
  const TrainedWith olmoe{"olmoe"}, mixtral{"mixtral", 0.2};
  f.check_bits(olmoe, 4, {Way{4, "dp"}, Way{4, "ep"}, Way{4, "zebra", 2}});
  f.check_bits(mixtral, 4, {Way{4, "dp"}, Way{4, "ep"}, Way{4, "zebra", 1}});
  f.check_bits(kFull, 15, {Way{3, "dp"}, Way{5, "ep"}, Way{15, "ep", 3}});
}

TEST_CASE("device ranks: groups and recompute change no bit", "[.long]") {
  for (const Way& way : {Way{2, "dp"}, Way{2, "ep"}, Way{3, "zebra", 2}}) {
    RanksFixture f;
    f.set_devices("virtual:mem=64M");
    f.check_groups(way);
  }
}

TEST_CASE("device ranks: a run goes on with devices or without") {
  RanksFixture f;
  const std::string device = "virtual:mem=64M";
  f.check_path(kFull, {Way{2, "ep", 0, device}, Way{1}, Way{2, "dp", 0, device}});
  if (kSanitized) return;
  f.check_path(kBf16, {Way{2, "dp", 0, device}, Way{1, "", 0, device}, Way{4, "ep", 2, device}});
}

TEST_CASE("device ranks: ranks with devices beside ranks on the host") {
  RanksFixture f;
  const auto check = [&](const TrainedWith& with, const Way& way,
                         const std::vector<RankDevices>& devices) {
    f.set_mode(way.mode, way.sharing);
    TrainConfig one = f.config_of(with, "one", 4, 1);
    const RunBits expected = f.bits_of(one);
    REQUIRE(expected.steps.size() == 3);
    TrainConfig config = f.config_of(with, "mixed", 4, way.ranks);
    config.rank_devices = devices;
    INFO(text_of(with, {}) << " " << way.mode << " " << text_of(devices));
    CHECK(f.bits_of(config) == expected);
    remove_tree(one.out);
    remove_tree(config.out);
  };
  check(kFull, Way{2, "ep"}, {{1, 1, "virtual:mem=64M"}});
  if (kSanitized) return;
  check(kLora, Way{2, "dp"}, {{0, 0, "virtual:mem=64M"}});
  check(kFull, Way{3, "zebra", 2}, {{0, 1, "virtual:mem=64M"}, {2, 2, "host"}});
}

TEST_CASE("device ranks: each has experts on the host\\, with attention on its device") {
  RanksFixture f;
  f.set_mode("dp");
  f.set_devices("virtual:mem=1k,host");
  const TrainConfig small = f.config_of(kFull, "small", 4, 2);
  const uint64_t least = least_device_memory(small).front();
  f.set_devices("virtual:mem=" + std::to_string(least + 1024) + ",host");
  RecordingReporter reporter;
  const TrainConfig config = f.config_of(kFull, "held", 4, 2);
  const PlannedRun run(config, open_model(config), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  const Json& held = plan.find("held_experts")->as_array()[0];
  CHECK(held.find("held")->as_int() < held.find("experts")->as_int());
  f.check_bits(kFull, 4, {Way{2, "dp"}});
}

TEST_CASE("device ranks: the memory of each rank is in the plan\\, and adds up") {
  RanksFixture f;
  f.set_mode("ep");
  f.set_devices("virtual:mem=64M");
  TrainConfig config = f.config_of(kFull, "run", 4, 2);
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  std::vector<std::string> places;
  for (const Json& of : plan.find("memory")->as_array()) {
    places.push_back(of.find("place")->as_string());
  }
  CHECK(places == std::vector<std::string>{"0/host", "0/virtual:0", "1/host", "1/virtual:0"});
  const auto process = static_cast<int64_t>(run.model.plan.host().peak);
  CHECK(peak_at(plan, "0/host") + peak_at(plan, "1/host") == process);
  // Rank 0 saves: it has all experts and moments. The other has its own.
  CHECK(peak_at(plan, "1/virtual:0") < peak_at(plan, "0/virtual:0"));
  CHECK(peak_at(plan, "1/host") > peak_at(plan, "1/virtual:0"));

  REQUIRE(f.run(config) == ExitCode::done);
  const Json written = parse_json(read_file(f.dir / "run/plan.json"), "plan");
  for (const Json& of : written.find("memory")->as_array()) {
    const std::string place = of.find("place")->as_string();
    if (place == "1/virtual:0") continue;
    INFO(place);
    const double peak = of.find("peak_bytes")->as_double();
    const double measured = of.find("measured_peak_bytes")->as_double();
    CHECK(measured > 0);
    if (!kSanitized && place != "0/host") CHECK(measured < 1.01 * peak);
  }
}

TEST_CASE("device ranks: what does not fit the device of a rank is refused\\, with its name") {
  RanksFixture f;
  f.set_mode("dp");
  const TrainConfig config = f.config_of(kFull, "refused", 4, 2);
  f.check_refused(config, "rank 1: the plan needs", [](TrainConfig& c) {
    c.rank_devices = {{1, 1, "virtual:mem=50k"}};
  });
  f.check_refused(config, "names rank 2, but the last of 2 ranks is 1", [](TrainConfig& c) {
    c.rank_devices = {{1, 2, "virtual"}};
  });
  f.check_refused(config, "weights that travel", [](TrainConfig& c) {
    c.devices = "virtual:mem=64M";
    c.policy = "mobius";
  });
  f.check_refused(config, "names 2 devices", [](TrainConfig& c) { c.devices = "2xvirtual"; });
  f.check_refused(config, "at one place", [](TrainConfig& c) {
    c.parallel = "ep";
    c.devices = "virtual,host";
  });
}

TEST_CASE("device ranks: a link to a device carries the rows that leave their rank\\, no others") {
  RanksFixture f;
  f.set_mode("ep");
  f.set_devices("virtual:mem=64M");
  TrainConfig config = f.config_of(kLora, "run", 2, 2);
  config.recompute = Recompute::none;
  config.lora_targets = {"attention"};  // gradients would hide rows
  config.expert_rank = {};
  config.steps = 1;
  REQUIRE(f.run(config) == ExitCode::done);
  const Json line = parse_json(f.lines("run/metrics.jsonl").front(), "a line");
  const Json& bytes = *line.find("bytes");
  const double out = bytes.find("0/virtual:0->0/host")->as_double();
  const double in = bytes.find("0/host->0/virtual:0")->as_double();
  const double sent = bytes.find("0/host->1/host")->as_double();
  const double received = bytes.find("1/host->0/host")->as_double();
  INFO("out " << out << ", in " << in << ", sent " << sent << ", received " << received);
  CHECK(out > sent / 2);
  CHECK(in > received / 2);
  CHECK(out < 1.5 * sent);
  CHECK(in < 1.5 * received);
}

}  // namespace hearth::test
