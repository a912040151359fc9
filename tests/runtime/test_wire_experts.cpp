// Experts that travel compressed between two ranks: who has which bits afterwards, and a frame that is
// of another step.
#include "runtime/wire_experts.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <list>
#include <mutex>

#include "runtime/shared_parameters.h"
#include "support/borrowed_world.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace hearth::test {
namespace {

const OpSet& cpu_ops() {
  register_all_op_sets();
  return find_op_set("cpu");
}

RankShards two_ranks(int32_t rank, bool consistent) {
  RankShards shards{2, 2, rank};
  shards.share(ExpertDomains({{2, 2}}));
  shards.wire = {.kind = ExpertWire::Kind::residual, .ratio = 6, .threshold = 1};
  shards.wire.consistent = consistent;
  return shards;
}

/// What a rank has of each tensor of an expert before and after, and whether it owns it.
struct RankCopies {
  std::vector<std::vector<float>> before, after;
  std::vector<bool> owned;
  std::vector<WiredStep> report;
};

std::vector<float> values_of(const View& view) {
  return {view.as<float>(), view.as<float>() + view.size()};
}

/// Frames that it sends are of the next step.
class CommunicatorOfFrames final : public Communicator {
 public:
  explicit CommunicatorOfFrames(std::unique_ptr<Communicator> inner)
      : Communicator(inner->ranks(), inner->ranks()[static_cast<size_t>(inner->rank())],
                     std::make_shared<SentBytes>(inner->size())),
        inner_(std::move(inner)) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    constexpr size_t kStep = 24;
    for (Outgoing& message : operation.out) {
      const ConstBytes bytes = message.bytes;
      if (bytes.bytes < 48 || std::memcmp(bytes.data, "WERF", 4) != 0) continue;
      std::vector<std::byte>& copy = copies_.emplace_back(bytes.data, bytes.data + bytes.bytes);
      copy[kStep] = static_cast<std::byte>(std::to_integer<int>(copy[kStep]) + 1);
      message.bytes.data = copy.data();
    }
    return inner_->run(std::move(operation));
  }

 private:
  std::unique_ptr<Communicator> inner_;
  std::list<std::vector<std::byte>> copies_;
};

class WorldOfFrames final : public BorrowedWorld {
 public:
  explicit WorldOfFrames(World& world) : BorrowedWorld(world) {}
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    return std::make_unique<CommunicatorOfFrames>(BorrowedWorld::group(ranks));
  }
};

/// All layers travel, at a rank whose weights are of this seed.
RankCopies give_all(World& world, int64_t step, uint64_t seed) {
  TinyModel model(tiny_config(), cpu_ops(), DType::f32, seed);
  const RankShards shards = two_ranks(world.rank(), false);
  const Owners owners = owners_of(model.table, shards);
  WireExperts wire(shards, model.table, owners);
  RankTeam team(world);
  team.begin_step(step);
  Device* const host = &model.device(kHostPlace);
  DeviceStage stage({&host, 1}, 1);
  const auto copies = [&] {
    std::vector<std::vector<float>> all;
    for (const Tensor& t : model.table.tensors()) {
      if (!wire.has(t.block)) continue;
      all.push_back(values_of(t.copies[static_cast<int>(CopyRole::master)].view));
    }
    return all;
  };
  RankCopies result;
  result.before = copies();
  for (const Tensor& t : model.table.tensors()) {
    if (wire.has(t.block)) result.owned.push_back(owners.owner(t.block) == world.rank());
  }
  for (const int32_t layer : wire.layers()) {
    Arena staging("staging", wire.staging_bytes(model.table, layer, 1));
    wire.give(model.table, team, stage, {staging.data(), staging.size()}, layer);
  }
  result.after = copies();
  result.report = wire.report();
  return result;
}

}  // namespace

TEST_CASE("wire experts: owners keep their weights\\, others get most of them") {
  std::mutex mutex;
  std::vector<RankCopies> of_rank(2);
  RankOptions options;
  options.world.ranks = 2;
  options.checked = true;
  // Each rank begins with other weights, so all that is right has travelled.
  const auto ends = run_ranks(options, [&](World& world) {
    RankCopies copies = give_all(world, 3, 1 + static_cast<uint64_t>(world.rank()));
    const std::lock_guard lock(mutex);
    of_rank[static_cast<size_t>(world.rank())] = std::move(copies);
  });
  REQUIRE(first_line(ends).empty());
  REQUIRE_FALSE(of_rank[0].owned.empty());
  for (size_t rank = 0; rank < 2; ++rank) {
    const RankCopies &own = of_rank[rank], &other = of_rank[1 - rank];
    REQUIRE(own.report.size() == 2);
    for (size_t i = 0; i < own.owned.size(); ++i) {
      REQUIRE(own.owned[i] != other.owned[i]);
      if (own.owned[i]) {
        CHECK(own.after[i] == own.before[i]);
        continue;
      }
      // As many are exact as the frame has, and the others are all of one shared expert.
      const std::vector<float>& exact = other.before[i];
      int64_t equal = 0;
      for (size_t k = 0; k < exact.size(); ++k) equal += own.after[i][k] == exact[k];
      CHECK(equal >= kept_elements(std::ssize(exact), DType::f32, 6));
      CHECK(equal < std::ssize(exact) / 2);
    }
    for (const WiredStep& layer : own.report) {
      CHECK(layer.error > 0);
      CHECK(layer.error < 1);
      CHECK(layer.ratio > 3);
    }
    for (size_t layer = 0; layer < own.report.size(); ++layer) {
      CHECK(own.report[layer].error == other.report[layer].error);
      CHECK(own.report[layer].ratio == other.report[layer].ratio);
    }
  }
}

TEST_CASE("wire experts: a frame of another step ends all with one line that names both") {
  RankOptions options;
  options.world.ranks = 2;
  const auto ends = run_ranks(options, [&](World& world) {
    if (world.rank() == 1) {
      give_all(world, 3, 1);
    } else {
      WorldOfFrames other(world);
      give_all(other, 3, 1);
    }
  });
  for (const RankEnd& end : ends) {
    INFO(end.line);
    CHECK(end.code == ExitCode::device);
    CHECK_FALSE(end.bug);
    CHECK(end.line == ends.front().line);
    CHECK(end.line.find('\n') == end.line.npos);
    CHECK(end.line.find("from rank 0 ") != end.line.npos);
    CHECK(end.line.find("layer 0: weights of layer 0, expert ") != end.line.npos);
    CHECK(end.line.find("of step 4, shared expert ") != end.line.npos);
    CHECK(end.line.find("expected expert ") != end.line.npos);
    CHECK(end.line.find("of step 3, shared expert ") != end.line.npos);
  }
}

}  // namespace hearth::test
