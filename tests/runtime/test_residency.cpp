// Copies of blocks on a device: what is leased is there and newest, and every byte is counted.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "device/virtual_device.h"
#include "runtime/residency_homes.h"
#include "support/faulty_device.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

std::unique_ptr<FaultyDevice> device_with(const VirtualOptions& options = {}) {
  return std::make_unique<FaultyDevice>(make_virtual_device(options));
}

/// A device with copies of experts, and a stream that computes.
struct Copies {
  explicit Copies(ResidencyHomes& h, const SlotPlan& plan, const VirtualOptions& options = {},
                  int64_t may_pin = int64_t{1} << 60)
      : homes(h), device(device_with(options)), stream(device->create_stream({})) {
    device->may_pin = may_pin;
    pinned.emplace(*device, Residency::home_memory(homes.table, plan));
    residency.emplace(*device, homes.table, plan, *pinned);
  }
  Lease lease(std::vector<BlockId> blocks, bool with_gradient = false) {
    const Lease lease = residency->lease(blocks, with_gradient);
    residency->wait(lease, *stream);
    for (const LeasedBlock& block : lease.blocks) {
      CHECK(homes.has_weights(residency->weights(block.block), block.weights));
      CHECK((block.gradient != nullptr) ==
            (with_gradient && homes.table.gradient(homes.table.block(block.block).begin)));
    }
    return lease;
  }
  /// Reads the blocks; adds to their gradients unless `add` is 0.
  void use(std::vector<BlockId> blocks, float add = 0) {
    const Lease l = lease(std::move(blocks), add != 0);
    for (const LeasedBlock& block : l.blocks) {
      if (block.gradient)
        ResidencyHomes::add(residency->gradient(block.block), block.gradient, add);
    }
    residency->release(l, *stream);
    settle(l);
  }
  /// A stream may see a copy before the device's events have been reported: waits for the reports.
  void settle(const Lease& lease) const {
    const auto is_reported = [&] {
      const ResidencyCounts counts = residency->counts();
      return counts.bytes_in == device->copied(StreamUse::copy_in) &&
             counts.bytes_out == device->copied(StreamUse::copy_out) &&
             std::ranges::all_of(lease.blocks, [&](const LeasedBlock& block) {
               return residency->where(block.block) == Where::here &&
                      (block.gradient == nullptr ||
                       residency->where(block.block, Cargo::gradient) == Where::here);
             });
    };
    for (int i = 0; i < 20'000 && !is_reported(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    CHECK(is_reported());
  }
  void home(BlockId block) { residency->bring_home(block, block + 1)->synchronize(); }
  void update(BlockId block) {
    residency->begin_change(block, block + 1, HomeChange::updated);
    homes.update(block);
    residency->changed(block, block + 1, HomeChange::updated);
  }
  /// The counted bytes are those that the device copied.
  void check_bytes() const {
    const ResidencyCounts counts = residency->counts();
    CHECK(counts.bytes_in == device->copied(StreamUse::copy_in));
    CHECK(counts.bytes_out == device->copied(StreamUse::copy_out));
  }

  ResidencyHomes& homes;
  std::unique_ptr<FaultyDevice> device;
  std::unique_ptr<Stream> stream;
  std::optional<PinnedHomes> pinned;
  std::optional<Residency> residency;
};

TEST_CASE("residency: how blocks lie in slots", "[residency]") {
  const ResidencyHomes homes({.experts = 2, .hidden = 40, .width = 10});
  const SlotLayout weights = slot_layout(homes.table, 0, Cargo::weights, homes.policy);
  REQUIRE(weights.tensors.size() == 3);
  CHECK(weights.tensors[0].bytes == 800);
  CHECK(weights.tensors[1].offset == 896);  // a multiple of 64 elements
  CHECK(weights.offset_of(2) == 1792);
  CHECK(weights.bytes == 2592);
  CHECK(weights.slot_bytes() == 3072);
  const auto whole = home_ranges(homes.table, weights, Cargo::weights);
  REQUIRE(whole.size() == 1);  // homes have the same gaps
  CHECK(whole[0].bytes == weights.bytes);
  CHECK(whole[0].home == homes.table.weight(0).data);
  const SlotLayout gradient = slot_layout(homes.table, 1, Cargo::gradient, homes.policy);
  CHECK(gradient.tensors[0].type == DType::f32);
  CHECK(gradient.offset_of(5) == 2 * 1792);

  const ResidencyHomes mixed({.experts = 1, .freezes_gate = true});
  const SlotLayout of_both = slot_layout(mixed.table, 0, Cargo::weights, mixed.policy);
  CHECK(of_both.tensors.size() == 3);
  CHECK(home_ranges(mixed.table, of_both, Cargo::weights).size() == 2);
  CHECK(slot_layout(mixed.table, 0, Cargo::gradient, mixed.policy).tensors.size() == 2);

  const ResidencyHomes frozen({.experts = 1, .rank = 4});
  CHECK(slot_layout(frozen.table, 0, Cargo::gradient, frozen.policy).bytes == 0);
  CHECK(slot_layout(frozen.table, 1, Cargo::gradient, frozen.policy).tensors.size() == 6);
}

TEST_CASE("residency: a lease loads what is not there, and hits what is", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(4, 2, 4096));
  copies.use({2, 0});
  const size_t bytes = copies.residency->weights(0).bytes;
  REQUIRE(bytes == 3 * 64 * 48 * 2);
  ResidencyCounts counts = copies.residency->counts();
  CHECK(counts.bytes_in == 2 * bytes);
  CHECK(counts.loads == 2);
  CHECK(counts.expert_leases == 2);
  CHECK(counts.expert_hits == 0);
  copies.use({0, 2, 0});
  copies.use({3});
  counts = copies.residency->counts();
  CHECK(counts.bytes_in == 3 * bytes);
  CHECK(counts.expert_hits == 3);
  CHECK(counts.evictions == 0);
  for (int step = 0; step < 3; ++step) copies.use({0, 1, 2, 3});  // all fit: they stay
  counts = copies.residency->counts();
  CHECK(counts.bytes_in == 4 * bytes);
  CHECK(counts.bytes_out == 0);
  CHECK(counts.expert_hits == 3 + 11);
  copies.check_bytes();
}

TEST_CASE("residency: wants load ahead, and are taken back while queued", "[residency]") {
  ResidencyHomes homes({.experts = 6});
  Copies copies(homes, homes.plan(2, 2, 4096), paced(20e6));
  copies.residency->keep_trace();
  Wants wants;
  for (BlockId block : homes.experts) wants.load.push_back({block, Priority::stage, block});
  copies.residency->apply(wants);
  copies.residency->apply({.load = {}, .drop = {2, 3, 4, 5}});
  CHECK(copies.residency->where(4) == Where::home);
  copies.use({0, 1});
  const ResidencyCounts counts = copies.residency->counts();
  CHECK(counts.loads == 2);
  const std::vector<LoadTime> trace = copies.residency->take_trace();
  REQUIRE(trace.size() == 2);
  CHECK(trace[0].block == 0);
  CHECK(trace[0].bytes == copies.residency->weights(0).bytes);
  CHECK(trace[0].end - trace[0].begin > 0.9 * 18432 / 20e6);
  CHECK(trace[1].end > trace[0].end);
  CHECK(copies.residency->take_trace().empty());
  copies.check_bytes();
}

TEST_CASE("residency: the copy that is used last gives way", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2));
  copies.use({0, 1});
  copies.residency->expect(0, 9);
  copies.residency->expect(1, 5);
  copies.use({2});
  CHECK(copies.residency->where(0) == Where::home);
  CHECK(copies.residency->where(1) == Where::here);
  copies.residency->advance(6);  // the use of 1 has passed
  copies.residency->expect(2, 8);
  copies.use({3});
  CHECK(copies.residency->where(1) == Where::home);
  CHECK(copies.residency->where(2) == Where::here);
  CHECK(copies.residency->counts().evictions == 2);
}

TEST_CASE("residency: accumulators begin at zero, travel, and go home", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(3, 2, 4096));
  copies.use({0, 1}, 1);
  ResidencyCounts counts = copies.residency->counts();
  const size_t weights = copies.residency->weights(0).bytes;
  const size_t gradient = copies.residency->gradient(0).bytes;
  CHECK(counts.bytes_in == 2 * weights);
  CHECK(counts.bytes_cleared == 2 * gradient);
  CHECK(homes.gradient_is(0, 0));
  copies.use({2}, 5);  // one of the others has to go home
  CHECK(copies.residency->counts().bytes_out == gradient);
  copies.use({0, 1}, 2);  // and is loaded again
  counts = copies.residency->counts();
  CHECK(counts.bytes_in == 3 * weights + gradient);
  CHECK(counts.bytes_out == 2 * gradient);  // that of 2
  CHECK(homes.gradient_is(2, 5));
  copies.residency->bring_home(0, 3)->synchronize();
  CHECK(homes.gradient_is(0, 3));
  CHECK(homes.gradient_is(1, 3));
  CHECK(copies.residency->counts().stores == 4);
  copies.home(0);  // it is there
  copies.home(3);
  CHECK(copies.residency->counts().stores == 4);
  copies.check_bytes();

  for (const BlockId block : {0, 1, 2}) copies.update(block);
  CHECK(homes.gradient_is(0, 0));
  copies.use({1}, 7);  // new weights; the accumulator begins at zero again
  copies.home(1);
  CHECK(homes.gradient_is(1, 7));
  counts = copies.residency->counts();
  CHECK(counts.bytes_in == 4 * weights + gradient);
  CHECK(counts.stale > 0);
  CHECK(counts.loads == 3 + 3 + 1 + 2);
}

TEST_CASE("residency: the host adds to a gradient in between", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2));
  copies.use({0}, 1);
  copies.home(0);
  copies.residency->begin_change(0, 1, HomeChange::accumulated);
  homes.add_to_gradient(0, 10);
  copies.residency->changed(0, 1, HomeChange::accumulated);
  copies.use({0}, 100);
  copies.home(0);
  CHECK(homes.gradient_is(0, 111));
  CHECK(copies.residency->counts().bytes_in ==
        copies.residency->weights(0).bytes + copies.residency->gradient(0).bytes);
}

TEST_CASE("residency: an adapter comes with its base and goes home alone", "[residency]") {
  ResidencyHomes homes({.experts = 3, .rank = 4});
  Copies copies(homes, homes.plan(3, 3));
  const BlockId adapter = *homes.table.adapter_of(1);
  const Lease lease = copies.lease({1, 2}, false);
  REQUIRE(lease.blocks.size() == 4);
  CHECK(lease.of(adapter).weights != nullptr);
  CHECK(lease.of(2).block == 2);
  copies.residency->release(lease, *copies.stream);
  const Lease backward = copies.residency->lease(std::vector<BlockId>{1}, true);
  copies.residency->wait(backward, *copies.stream);
  CHECK(backward.of(1).gradient == nullptr);  // frozen
  REQUIRE(backward.of(adapter).gradient != nullptr);
  ResidencyHomes::add(copies.residency->gradient(adapter), backward.of(adapter).gradient, 4);
  copies.residency->release(backward, *copies.stream);
  copies.home(adapter);
  CHECK(homes.gradient_is(adapter, 4));
  const uint64_t before = copies.residency->counts().bytes_in;
  copies.update(adapter);
  copies.use({1});  // the base has not changed
  CHECK(copies.residency->counts().bytes_in - before == copies.residency->weights(adapter).bytes);
  copies.check_bytes();
}

TEST_CASE("residency: nothing reads a home while it changes", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2, 4096), paced(2e5));  // 20 ms a piece
  copies.residency->apply({.load = {{0, Priority::stage}}, .drop = {}});
  copies.residency->begin_change(0, 1, HomeChange::updated);  // while its pieces are in flight
  const uint64_t read = copies.device->copied(StreamUse::copy_in);
  CHECK(read < copies.residency->weights(0).bytes);
  copies.residency->apply({.load = {{0, Priority::expert}}, .drop = {}});  // it has to wait
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  CHECK(copies.device->copied(StreamUse::copy_in) == read);
  homes.update(0);
  copies.residency->changed(0, 1, HomeChange::updated);
  copies.use({0});
  CHECK(copies.residency->counts().bytes_in == read + copies.residency->weights(0).bytes);
}

TEST_CASE("residency: a stale copy is never read", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(4, 2));
  copies.use({0, 1});
  homes.update(1);  // unannounced
  copies.use({0});
  CHECK_THROWS_AS(copies.residency->lease(std::vector<BlockId>{1}, false), std::logic_error);
}

TEST_CASE("residency: misuse is an error", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2));
  CHECK_THROWS_AS(copies.residency->lease(std::vector<BlockId>{0, 1, 2}, false), std::logic_error);
  const Lease lease = copies.lease({0});
  CHECK_THROWS_AS(copies.residency->begin_change(0, 1, HomeChange::updated), std::logic_error);
  copies.residency->release(lease, *copies.stream);
  CHECK_THROWS_AS(copies.residency->release(lease, *copies.stream), std::logic_error);
  SlotPlan twice = homes.plan(2, 2);
  twice.blocks.push_back(0);
  CHECK_THROWS_AS(Residency::home_memory(homes.table, twice), std::logic_error);
  copies.use({1, 0});  // all is as it was
}

TEST_CASE("residency: a lease waits for the issue of a load, a stream for its end", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2), paced(2e5));  // 92 ms a block
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const Lease lease = copies.residency->lease(std::vector<BlockId>{0, 1}, false, true);
  REQUIRE(lease.blocks[0].ready != nullptr);
  CHECK_FALSE(lease.blocks[1].ready->reached());
  copies.residency->wait(lease, *copies.stream);
  CHECK(Clock::now() - begin > std::chrono::milliseconds(180));
  CHECK(lease.blocks[1].ready->reached());
  copies.residency->release(lease, *copies.stream);
  const ResidencyCounts counts = copies.residency->counts();
  CHECK(counts.stall_s > 0.1);
  CHECK(counts.late_load_s == counts.stall_s);
  CHECK(copies.residency->lease(std::vector<BlockId>{0}, false).blocks[0].ready == nullptr);
}

TEST_CASE("residency: homes that the system does not pin pass through a buffer", "[residency]") {
  std::vector<std::string> warnings;
  set_warning_sink([&](const std::string& message) { warnings.push_back(message); });
  for (const int64_t may_pin : {0, 8192}) {  // nothing, or the first pages
    ResidencyHomes homes;
    const SlotPlan plan = homes.plan(2, 2, 4096);
    warnings.clear();
    const auto device = device_with();
    device->may_pin = may_pin;
    std::optional<PinnedHomes> pinned;
    pinned.emplace(*device, Residency::home_memory(homes.table, plan),
                   PinnedHomes::Options{.piece_bytes = 8192, .threads = 3});
    CHECK(pinned->pinned_bytes() == static_cast<size_t>(may_pin));
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("virtual:0: the system pins " + std::to_string(may_pin) + " of ") == 0);
    {
      Residency residency(*device, homes.table, plan, *pinned);
      const auto stream = device->create_stream({});
      for (const BlockId block : {0, 1, 2, 3, 0}) {
        const Lease lease = residency.lease(std::span(&block, 1), true);
        residency.wait(lease, *stream);
        CHECK(homes.has_weights(residency.weights(block), lease.of(block).weights));
        ResidencyHomes::add(residency.gradient(block), lease.of(block).gradient, 1);
        residency.release(lease, *stream);
      }
      residency.bring_home(0, 4)->synchronize();
      CHECK(homes.gradient_is(0, 2));
      CHECK(homes.gradient_is(3, 1));
      CHECK(residency.counts().bytes_out == device->copied(StreamUse::copy_out));
    }
    pinned.reset();
    CHECK(device->pinned() == 0);
  }
  set_warning_sink({});
}

TEST_CASE("residency: pinned pages are cut into pieces that no copy crosses", "[residency]") {
  const auto device = device_with();
  const Arena arena("homes", 40 * 4096);
  std::byte* const at = arena.data();
  const PinnedHomes pinned(
      *device, {{at + 20 * 4096 + 5, 10}, {at + 100, 4096}, {at + 4196, 8000}, {at + 4500, 50}},
      {.piece_bytes = 8192, .threads = 2});
  CHECK(pinned.bytes() == 4 * 4096);
  CHECK(pinned.pinned_bytes() == 4 * 4096);
  CHECK(device->pinned() == 4 * 4096);
  const auto run = [&](size_t begin, size_t bytes) {
    const PinnedHomes::Run r = pinned.run_at(at + begin, bytes);
    return std::pair(r.bytes, r.is_pinned);
  };
  CHECK(run(0, 100) == std::pair(size_t{100}, true));
  CHECK(run(8000, 1000) == std::pair(size_t{192}, true));  // then the next piece
  CHECK(run(8192, 9000) == std::pair(size_t{4096}, true));
  CHECK(run(12288, 90000) == std::pair(size_t{17 * 4096}, false));
  CHECK(run(20 * 4096, 1) == std::pair(size_t{1}, true));
  CHECK(run(21 * 4096, 77) == std::pair(size_t{77}, false));
}

TEST_CASE("residency: an error of a copy reaches everyone", "[residency]") {
  for (const bool in : {true, false}) {
    ResidencyHomes homes;
    Copies copies(homes, homes.plan(2, 2, 4096));
    copies.use({0}, 1);
    copies.device->fail_copy = in ? 3 : 2;
    std::shared_ptr<Event> home;
    const Raised raised = raised_by([&] {
      if (!in) {
        home = copies.residency->bring_home(0, 1);
        home->synchronize();
      } else {
        const Lease lease = copies.residency->lease(std::vector<BlockId>{1}, false);
        copies.residency->wait(lease, *copies.stream);
      }
    });
    CHECK(raised.code == ExitCode::device);
    CHECK(raised.says("virtual:0: a planted fault"));
    const Raised later =
        raised_by([&] { copies.residency->lease(std::vector<BlockId>{0}, false); });
    CHECK(later.says("a planted fault"));
    CHECK(raised_by([&] { copies.residency->apply({}); }).says("a planted fault"));
    CHECK(raised_by([&] { copies.residency->bring_home(0, 1); }).says("a planted fault"));
    CHECK(raised_by([&] {
            copies.residency->shrink(homes.plan(2, 2).classes, "");
          }).says("a planted fault"));
  }
}

TEST_CASE("residency: a stop wakes whoever waits", "[residency]") {
  ResidencyHomes homes;
  Copies copies(homes, homes.plan(2, 2));
  const Lease held = copies.lease({0, 1});
  auto waiting = std::async(std::launch::async, [&] {
    return raised_by([&] { copies.residency->lease(std::vector<BlockId>{2}, false); });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  copies.residency->stop(std::make_exception_ptr(numeric_error("the loss is not finite")));
  const Raised raised = waiting.get();
  CHECK(raised.code == ExitCode::numeric);
  copies.residency->release(held, *copies.stream);  // no effect
  CHECK(raised_by([&] { copies.residency->apply({}); }).code == ExitCode::numeric);
}

TEST_CASE("residency: the time that weights stay is counted from their arrival to their end") {
  ResidencyHomes homes({.experts = 3});
  Copies copies(homes, homes.plan(2, 2));
  const auto taken = [&] {
    std::vector<double> stays(homes.table.blocks().size());
    copies.residency->take_stays(stays);
    return stays;
  };
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(4)); };
  CHECK(taken() == std::vector<double>(3));
  copies.use({0, 1}, 0);
  sleep();
  const std::vector<double> both = taken();
  CHECK(both[0] >= 0.004);
  CHECK(both[1] >= 0.004);
  CHECK(both[2] == 0);
  CHECK(taken()[0] < both[0]);  // of the time since
  copies.use({2}, 0);           // takes the place of one of them
  taken();
  sleep();
  const std::vector<double> other = taken();
  CHECK(other[2] >= 0.004);
  CHECK((other[0] == 0) != (other[1] == 0));
  CHECK(std::max(other[0], other[1]) >= 0.004);
  copies.residency->begin_change(0, 3, HomeChange::updated);
  copies.residency->changed(0, 3, HomeChange::updated);
  taken();
  sleep();
  CHECK(taken() == std::vector<double>(3));
}

TEST_CASE("residency: an update drops copies of what it changes, not of frozen weights") {
  ResidencyHomes homes({.experts = 2, .rank = 2});
  Copies copies(homes, homes.plan(2, 2));
  copies.use({0, 1}, 0);
  const BlockId adapter = *homes.table.adapter_of(0);
  const auto where = [&](BlockId block) { return copies.residency->where(block); };
  CHECK(where(0) == Where::here);
  CHECK(where(adapter) == Where::here);
  const auto blocks = static_cast<BlockId>(homes.table.blocks().size());
  copies.residency->begin_change(0, blocks, HomeChange::updated);
  copies.residency->changed(0, blocks, HomeChange::updated);
  CHECK(where(0) == Where::here);
  CHECK(where(adapter) == Where::home);
}

TEST_CASE("residency: a smaller budget drops the cheapest and says what", "[residency]") {
  ResidencyHomes homes({.experts = 6});
  Copies copies(homes, homes.plan(4, 4));
  copies.use({0, 1, 2, 3}, 1);
  const size_t weights = copies.residency->weights(0).slot_bytes();
  const size_t gradient = copies.residency->gradient(0).slot_bytes();
  const size_t all = 4 * (weights + gradient);
  CHECK(copies.residency->open_bytes() == all);
  const ShrinkReport report = copies.residency->shrink(homes.plan(3, 3).classes, "shrink=3");
  CHECK(report.why == "shrink=3");
  CHECK(report.blocks == 2);
  CHECK(report.bytes > 0);
  CHECK(report.bytes <= report.slot_bytes);
  CHECK(report.slot_bytes == weights + gradient);
  CHECK(report.open_bytes == 3 * (weights + gradient));
  CHECK(copies.residency->open_bytes() == report.open_bytes);
  copies.use({4, 5}, 1);
  copies.use({0, 1}, 1);
  const ShrinkReport least = copies.residency->shrink(homes.plan(1, 0).classes, "other programs");
  CHECK(least.open_bytes == 2 * (weights + gradient));  // a wave of two has to fit
  CHECK(least.slot_bytes == weights + gradient);
  copies.use({2, 3}, 1);
  copies.residency->bring_home(0, 6)->synchronize();
  for (const BlockId block : {0, 1, 2, 3}) CHECK(homes.gradient_is(block, 2));
  CHECK(homes.gradient_is(5, 1));
  copies.check_bytes();
}

}  // namespace
}  // namespace hearth::test
