// Plans whose devices have too little memory for the inputs of their layers: these wait on the host.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

/// What a plan says of its training schedule.
struct Planned {
  bool fits = false, recomputes = false, waits = false;
  int64_t group = 0;
  uint64_t device = 0;  // bytes
};

Planned plan_of(const TrainConfig& config) {
  unbind_thread();
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const Plan& plan = run.model.plan;
  return {plan.fits(), plan.train->recompute, plan.train->inputs_on_host, plan.train->group,
          plan.places.at(1).peak};
}

TrainConfig on_device(const SameBitsFixture& f, const std::string& out, uint64_t memory) {
  TrainConfig config = f.config_of({}, out);
  config.devices = "virtual:mem=" + std::to_string(memory);
  return config;
}

TEST_CASE("waiting inputs: a plan takes them to the host only where nothing else fits") {
  SameBitsFixture f;
  constexpr uint64_t kAmple = uint64_t{1} << 30;
  TrainConfig fixed = on_device(f, "x", kAmple);
  fixed.recompute = Recompute::blocks;
  fixed.group = 1;
  fixed.inputs_on_host = false;
  const Planned here = plan_of(fixed);
  fixed.inputs_on_host = true;
  const Planned there = plan_of(fixed);
  REQUIRE(there.device < here.device);

  const Planned ample = plan_of(on_device(f, "x", kAmple));
  CHECK_FALSE(ample.recomputes);
  CHECK_FALSE(ample.waits);
  const Planned enough = plan_of(on_device(f, "x", here.device));
  CHECK(enough.fits);
  CHECK(enough.recomputes);
  CHECK_FALSE(enough.waits);
  const Planned short_of = plan_of(on_device(f, "x", here.device - 1));
  CHECK(short_of.fits);
  CHECK(short_of.waits);
  CHECK(short_of.group == 1);
  CHECK(plan_of(on_device(f, "x", there.device)).waits);
  CHECK_FALSE(plan_of(on_device(f, "x", there.device - 1)).fits);
  // A choice of the user's stands.
  TrainConfig keeps = on_device(f, "x", there.device);
  keeps.recompute = Recompute::none;
  CHECK_FALSE(plan_of(keeps).waits);
  CHECK_FALSE(plan_of(keeps).fits);
}

TEST_CASE("waiting inputs: the least memory of a device runs, to the bits of the host") {
  SameBitsFixture f;
  for (const std::string& family : {std::string("qwen3_moe"), std::string("tied")}) {
    for (const std::string policy : {"", "mobius"}) {
      if (kSanitized && policy.empty() != (family == "tied")) continue;
      const TrainedWith with{family};
      RunsOn on{.devices = 1, .least = true};
      on.policy = policy;
      INFO(text_of(with, on));
      TrainConfig config = f.config_of(with, "plan");
      config.policy = policy;
      config.devices = f.list_of(config, on);
      const Planned plan = plan_of(config);
      CHECK(plan.fits);
      CHECK(plan.waits);
      CHECK(f.run_on(with, on) == f.on_host(with));
    }
  }
}

/// Of 16 layers, in "deep".
void make_deep_model(SameBitsFixture& f) {
  Json deep = parse_json(read_file(f.dir / "mixtral.json", 1 << 20), "mixtral.json");
  deep["num_hidden_layers"] = int64_t{16};
  f.write(f.dir / "deep.json", deep.dump());
  init_checkpoint(f.dir / "deep.json", f.dir / "deep", 5, f.dir / "tokenizer");
}

TEST_CASE("waiting inputs: they spare loads of weights where these are more bytes") {
  SameBitsFixture f;
  make_deep_model(f);
  // Six micro-batches of few tokens beside the weights, then of many.
  const auto planned = [&](int64_t tokens) {
    TrainConfig config = f.config_of({}, "x");
    config.model = f.dir / "deep";
    config.policy = "mobius";
    config.grad_accum = 6;
    config.seq_len = tokens;
    config.recompute = Recompute::blocks;
    TrainConfig fixed = config;
    fixed.devices = "virtual:mem=1G";
    fixed.inputs_on_host = false;
    fixed.devices = "virtual:mem=1";
    fixed.group = 1;
    const uint64_t one = plan_of(fixed).device;
    fixed.group = 6;
    const uint64_t all = plan_of(fixed).device;
    REQUIRE(one < all);
    config.devices = "virtual:mem=" + std::to_string(one + (all - one) / 3);
    return plan_of(config);
  };
  const Planned few = planned(16);
  CHECK(few.fits);
  CHECK(few.waits);
  const Planned many = planned(1024);
  CHECK(many.fits);
  CHECK_FALSE(many.waits);
  CHECK(many.group < 6);
}

TEST_CASE("recompute: chosen where weights travel and larger groups are predicted to be faster") {
  SameBitsFixture f;
  make_deep_model(f);
  f.assumed.reset();  // without rates of links, all loads are free
  TrainConfig config = f.config_of({}, "x");
  config.model = f.dir / "deep";
  config.policy = "mobius";
  config.grad_accum = 6;
  config.seq_len = 16;
  TrainConfig fixed = config;
  fixed.devices = "virtual:mem=1";
  fixed.recompute = Recompute::none;
  fixed.group = 2;
  const uint64_t two = plan_of(fixed).device;  // with the fewest slots
  const auto planned = [&](double link, Recompute recompute) {
    TrainConfig c = config;
    c.recompute = recompute;
    f.link_bytes_per_s = link;
    c.devices = f.with_costs("virtual:mem=" + std::to_string(two));
    return plan_of(c);
  };
  const Planned slow = planned(2e6, Recompute::automatic);
  CHECK(slow.recomputes);
  CHECK(slow.group > 2);
  const Planned fast = planned(1e12, Recompute::automatic);
  CHECK_FALSE(fast.recomputes);
  CHECK(fast.group == 2);
  CHECK_FALSE(planned(2e6, Recompute::none).recomputes);
}

}  // namespace
}  // namespace hearth::test
