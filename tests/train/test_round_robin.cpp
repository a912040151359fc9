// --policy roundpipe: stages that go round the devices, with a cut of each direction.
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>

#include "train/same_bits.h"

namespace hearth::test {
namespace {

TrainConfig round_robin(SameBitsFixture& f, const std::string& out, const std::string& devices) {
  TrainConfig config = f.config_of({}, out);
  config.policy = "roundpipe";
  config.devices = devices;
  return config;
}

/// The layers of a list of stages, in its order; each stage's layers in the order of the direction.
std::vector<int64_t> layers_of(const Json& stages, bool backward) {
  std::vector<int64_t> layers;
  for (const Json& stage : stages.as_array()) {
    const JsonArray& ends = stage.find("layers")->as_array();
    const int64_t first = ends[0].as_int(), last = ends[1].as_int();
    for (int64_t i = 0; i <= last - first; ++i) layers.push_back(backward ? last - i : first + i);
  }
  return layers;
}

std::vector<std::string> devices_of(const Json& stages) {
  std::vector<std::string> devices;
  for (const Json& stage : stages.as_array()) {
    devices.push_back(stage.find("device")->as_string());
  }
  return devices;
}

TEST_CASE("round robin: every layer has a stage of each direction, on the devices in turn") {
  SameBitsFixture f;
  for (const int count : {2, 3, 4}) {
    const Json plan = plan_of(round_robin(f, "x", std::to_string(count) + "xvirtual")).json;
    INFO(plan.dump());
    const Json &forward = *plan.find("stages"), &backward = *plan.find("stages_backward");
    CHECK(plan.find("recompute")->as_string() == "blocks");
    CHECK(plan.find("bits")->as_string() == "same");
    CHECK(layers_of(forward, false) == std::vector<int64_t>{0, 1, 2});
    CHECK(layers_of(backward, true) == std::vector<int64_t>{2, 1, 0});
    std::vector<std::string> devices = devices_of(forward);
    const std::vector<std::string> back = devices_of(backward);
    devices.insert(devices.end(), back.begin(), back.end());
    for (size_t s = 0; s < devices.size(); ++s) {
      CHECK(devices[s] == "virtual:" + std::to_string(s % static_cast<size_t>(count)));
    }
    CHECK(std::set(devices.begin(), devices.end()).size() == static_cast<size_t>(count));
  }
}

TEST_CASE("round robin: backward runs at other devices than forward") {
  SameBitsFixture f;
  const auto opened = open_model(round_robin(f, "x", "2xvirtual"));
  PlanRequest request;
  request.training = true;
  request.micro_batches = 3;
  request.tokens = request.longest = 64;
  const PlacedModel model =
      place_model(trained_model(opened, round_robin(f, "x", "2xvirtual")), request);
  std::map<std::pair<int32_t, bool>, Place> places;  // of attention, by layer and direction
  for (const Task& task : model.plan.train->schedule.tasks) {
    if (task.kind != TaskKind::attention) continue;
    const std::pair key(task.layer, task.phase != Phase::forward);
    CHECK(places.emplace(key, task.place).first->second == task.place);
  }
  REQUIRE(places.size() == 6);
  int moved = 0;
  for (const int32_t layer : {0, 1, 2}) moved += places[{layer, false}] != places[{layer, true}];
  CHECK(moved > 0);
}

TEST_CASE("round robin: a plan file keeps the cuts of both directions") {
  SameBitsFixture f;
  TrainConfig config = round_robin(f, "by-plan", "2xvirtual");
  Json plan = plan_of(config).json;
  const std::string file = f.dir / "plan.json";
  config.plan_file = file;
  f.write(file, plan.dump());
  CHECK(plan_of(config).json.find("stages_backward")->dump() ==
        plan.find("stages_backward")->dump());
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("by-plan") == f.on_host({}).root);
  // A cut that leaves layers out is none of this run.
  const auto stage = [](int64_t number, const char* device, int64_t first, int64_t last) {
    return Json(
        JsonObject{{"stage", number}, {"device", device}, {"layers", JsonArray{first, last}}});
  };
  plan["stages_backward"] = JsonArray{stage(0, "virtual:0", 1, 1), stage(1, "virtual:1", 0, 0)};
  f.write(file, plan.dump());
  const Raised refused = raised_by([&] { plan_of(config); });
  CHECK(refused.code == ExitCode::usage);
  CHECK(refused.says("stages_backward"));
  plan["stages_backward"] = int64_t{3};
  f.write(file, plan.dump());
  const Raised broken = raised_by([&] { plan_of(config); });
  CHECK(broken.code == ExitCode::input);
  CHECK(broken.says("stages_backward: expected a list"));
}

TEST_CASE("round robin: what cannot be is refused") {
  SameBitsFixture f;
  TrainConfig kept = round_robin(f, "x", "2xvirtual");
  kept.recompute = Recompute::none;
  const Raised none = raised_by([&] { f.run(kept); });
  CHECK(none.code == ExitCode::usage);
  CHECK(none.says("roundpipe computes a layer's backward on another device"));
  const Raised many = raised_by([&] { f.run(round_robin(f, "x", "5xvirtual")); });
  CHECK(many.code == ExitCode::usage);
  CHECK(many.says("5 devices for 3 layers and the embedding; name at most 4"));
  const Raised host = raised_by([&] { f.run(round_robin(f, "x", "host")); });
  CHECK(host.code == ExitCode::usage);
  CHECK(host.says("--policy roundpipe"));
}

TEST_CASE("round robin: small memory has more stages, and says what it needs") {
  SameBitsFixture f;
  TrainConfig config = round_robin(f, "x", "2xvirtual:mem=4096");
  const std::vector<uint64_t> need = f.devices_need(config);
  config.devices = device_list({.devices = 2}, need);
  CHECK(plan_of(config).fits);
  config.devices = device_list({.devices = 2}, {need[0] * 97 / 100, need[1] * 97 / 100});
  CHECK(!plan_of(config).fits);
}

}  // namespace
}  // namespace hearth::test
