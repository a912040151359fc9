// Devices that hold the most used experts (--policy static) follow what is used: experts exchange their
// places when a state is saved.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "modes/hot_experts.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

constexpr Place kDevice = 1;

TEST_CASE("moved experts: the hottest of the host for the coldest of a device, if much hotter") {
  using Places = std::vector<std::vector<Place>>;
  const Places homes = {{kDevice, 0, kDevice, 0, 0}, {}, {0, 0, 0, 0, 0}};
  const auto swaps = [&](const std::vector<double>& tokens) {
    return swaps_to_hotter(homes, {tokens, {}, {9, 9, 9, 9, 9}}, kDevice);
  };
  CHECK(swaps({5, 1, 5, 2, 2}).empty());
  CHECK(swaps({4, 1, 9, 4.9, 2}).empty());
  CHECK(swaps({4, 1, 9, 5, 2}) == std::vector<ExpertSwap>{{0, 3, 0}});
  CHECK(swaps({1, 7, 2, 3, 8}) == std::vector<ExpertSwap>{{0, 4, 0}, {0, 1, 2}});
  CHECK(swaps({0, 0, 0, 1, 0}) == std::vector<ExpertSwap>{{0, 3, 0}});
  CHECK(swaps({0, 0, 0, 0, 0}).empty());
  // All or none at devices: nothing can be exchanged.
  CHECK(swaps_to_hotter({{1, 1}, {0, 0}}, {{1, 5}, {1, 5}}, kDevice).empty());
  CHECK(share_at_devices(homes, {{3, 1, 3, 1, 2}, {}, {2, 2, 2, 2, 2}}, kDevice) == 0.3);
  CHECK(share_at_devices(homes, {{0, 0, 0, 0, 0}, {}, {0, 0, 0, 0, 0}}, kDevice) == 0);
}

/// Runs that save each step, on devices with memory for some experts.
class Moving : public SameBitsFixture {
 public:
  TrainConfig config_on(const TrainedWith& with, const std::string& out, int devices,
                        int experts) const {
    TrainConfig c = config_of(with, out);
    c.steps = 5;
    c.save_every.steps = 1;
    if (devices == 0) return c;
    c.group = 1;
    c.recompute = Recompute::none;
    c.devices = list_of(c, {.devices = devices, .host = "host", .hot = experts});
    c.policy = "static";
    c.recorded.push_back({"policy", "static", false});
    c.recorded.push_back({"devices", c.devices, false});
    return c;
  }
  std::vector<Json> moves(const std::string& out) const {
    std::vector<Json> events;
    for (const std::string& line : lines(out + "/journal.jsonl")) {
      const Json event = parse_json(line, "journal");
      if (event.find("event")->as_string() == "experts_moved") events.push_back(event);
    }
    return events;
  }
};

TEST_CASE("moved experts: the bits of one host, on other experts than at the start") {
  Moving f;
  for (const TrainedWith& with :
       {TrainedWith{"qwen3_moe"}, TrainedWith{"qwen2_moe", 0.2}, TrainedWith{"olmoe", 0.0},
        TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    if (kSanitized && with.family != "qwen2_moe" && with.family != "tied") continue;
    INFO(with.family);
    const std::string host = "host-" + with.family;
    REQUIRE(f.run(f.config_on(with, host, 0, 0)) == ExitCode::done);
    size_t count = 0;
    for (const int devices : {1, 2}) {
      INFO(devices << " devices");
      const std::string out = with.family + std::to_string(devices);
      const TrainConfig config = f.config_on(with, out, devices, 2);
      REQUIRE(f.run(config) == ExitCode::done);
      CHECK(f.root(out) == f.root(host));
      CHECK(f.result(out) == f.result(host));
      const std::vector<Json> moves = f.moves(out);
      count += moves.size();
      for (const Json& move : moves) {
        CHECK(move.find("step")->as_int() < 5);  // what is saved last is not used again
        CHECK_FALSE(move.find("swaps")->as_array().empty());
        CHECK(move.find("device_share")->as_double() >
              move.find("device_share_before")->as_double());
      }
    }
    CHECK(count > 0);
  }
}

TEST_CASE("moved experts: a run stops behind a move and goes on, to the same bits") {
  Moving f;
  const TrainedWith with{"qwen3_moe"};
  REQUIRE(f.run(f.config_on(with, "host", 0, 0)) == ExitCode::done);
  const TrainConfig config = f.config_on(with, "parts", 1, 2);
  for (int64_t step = 1; step < 5; ++step) {
    REQUIRE(f.run_until(config, step) == ExitCode::stopped);
  }
  REQUIRE(f.run(config) == ExitCode::done);
  CHECK(f.root("parts") == f.root("host"));
  CHECK(f.result("parts") == f.result("host"));
}

TEST_CASE(
    "moved experts: nothing moves where a device holds all experts, or other policies decide") {
  Moving f;
  const TrainedWith with{"qwen3_moe"};
  TrainConfig all = f.config_on(with, "all", 1, 2);
  all.devices = "virtual,host";
  REQUIRE(f.run(all) == ExitCode::done);
  CHECK(f.moves("all").empty());
  TrainConfig other = all;
  other.out = f.dir / "other";
  other.policy = "mobius";
  REQUIRE(f.run(other) == ExitCode::done);
  CHECK(f.moves("other").empty());
}

}  // namespace
}  // namespace hearth::test
