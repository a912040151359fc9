// Experts that travel compressed between two ranks: who has which bits afterwards, and frames that are
// of another layer, expert or step, or of another shared expert.
#include "runtime/wire_experts.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <list>
#include <map>
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

/// What a rank does wrong with its frames. All of these have the right size.
enum class WrongFrame {
  next_step,     // says that it is of the next step
  old_step,      // is that of the step before
  other_layer,   // is that of the layer before
  other_expert,  // two experts of a layer are swapped
  other_shared,  // another rank gets another shared expert
};

bool is_frame(ConstBytes bytes) {
  return bytes.bytes >= 48 && std::memcmp(bytes.data, "WERF", 4) == 0;
}
template <class T>
T at_offset(ConstBytes frame, size_t offset) {
  T value;
  std::memcpy(&value, frame.data + offset, sizeof value);
  return value;
}

/// Changes what a rank sends. The offsets are those of comm/residual_frame.h.
class FrameSpoiler {
 public:
  explicit FrameSpoiler(WrongFrame wrong) : wrong_(wrong) {}

  void spoil(Operation& operation, int32_t own_rank) {
    // The first gather of a layer has the mean.
    if (operation.point.kind == CommKind::gather && wrong_ == WrongFrame::other_shared &&
        gathers_++ % 2 == 0) {
      for (Outgoing& message : operation.out) {
        if (message.to != own_rank) flip(message, 0);
      }
    }
    std::vector<Outgoing*> frames;
    for (Outgoing& message : operation.out) {
      if (is_frame(message.bytes)) frames.push_back(&message);
    }
    for (Outgoing* frame : frames) spoil(*frame);
    if (wrong_ == WrongFrame::other_expert && frames.size() > 1) {
      std::swap(frames[0]->bytes, frames[1]->bytes);
    }
  }

 private:
  using Memory = std::vector<std::byte>;
  /// The layer, and the expert within it.
  using Of = std::pair<int32_t, int32_t>;

  void spoil(Outgoing& frame) {
    const Of of{at_offset<int32_t>(frame.bytes, 16), at_offset<int32_t>(frame.bytes, 20)};
    const auto kept = [&](const Of& other) {
      const auto found = kept_.find(other);
      if (found != kept_.end()) send(frame, found->second);
    };
    const Memory own(frame.bytes.data, frame.bytes.data + frame.bytes.bytes);
    if (wrong_ == WrongFrame::next_step) flip(frame, 24);
    if (wrong_ == WrongFrame::old_step) kept(of);
    if (wrong_ == WrongFrame::other_layer) kept({of.first - 1, of.second});
    kept_[of] = own;
  }
  void flip(Outgoing& message, size_t offset) {
    Memory changed(message.bytes.data, message.bytes.data + message.bytes.bytes);
    changed[offset] ^= std::byte{7};  // step 3 becomes step 4
    send(message, changed);
  }
  void send(Outgoing& message, const Memory& bytes) {
    if (bytes.size() == message.bytes.bytes) message.bytes.data = sent_.emplace_back(bytes).data();
  }

  const WrongFrame wrong_;
  int gathers_ = 0;
  std::map<Of, Memory> kept_;  // as last sent
  std::list<Memory> sent_;     // lives as long as operations
};

class CommunicatorOfFrames final : public Communicator {
 public:
  CommunicatorOfFrames(std::unique_ptr<Communicator> inner, FrameSpoiler& spoiler)
      : Communicator(inner->ranks(), inner->ranks()[static_cast<size_t>(inner->rank())],
                     std::make_shared<SentBytes>(inner->size())),
        inner_(std::move(inner)),
        spoiler_(spoiler) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    spoiler_.spoil(operation, inner_->rank());
    return inner_->run(std::move(operation));
  }

 private:
  std::unique_ptr<Communicator> inner_;
  FrameSpoiler& spoiler_;
};

class WorldOfFrames final : public BorrowedWorld {
 public:
  WorldOfFrames(World& world, WrongFrame wrong) : BorrowedWorld(world), spoiler_(wrong) {}
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    return std::make_unique<CommunicatorOfFrames>(BorrowedWorld::group(ranks), spoiler_);
  }

 private:
  FrameSpoiler spoiler_;
};

/// All layers travel, in this step and in the next ones, at a rank whose weights are of this seed.
RankCopies give_all(World& world, int64_t step, uint64_t seed, int steps = 1) {
  TinyModel model(tiny_config(), cpu_ops(), DType::f32, seed);
  const RankShards shards = two_ranks(world.rank(), false);
  const Owners owners = owners_of(model.table, shards);
  WireExperts wire(shards, model.table, owners);
  RankTeam team(world);
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
  for (int i = 0; i < steps; ++i) {
    team.begin_step(step + i);
    for (const int32_t layer : wire.layers()) {
      Arena staging("staging", wire.staging_bytes(model.table, layer, 1));
      wire.give(model.table, team, stage, {staging.data(), staging.size()}, layer);
    }
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

TEST_CASE("wire experts: a wrong frame ends all with one line that names both") {
  struct Case {
    WrongFrame wrong;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases{
      {WrongFrame::next_step,
       {"layer 0: weights of layer 0, expert ", "of step 4, shared expert ", "of step 3, "}},
      {WrongFrame::old_step,
       {"layer 0: weights of layer 0, expert ", "of step 3, shared expert ", "of step 4, "}},
      {WrongFrame::other_layer, {"layer 1: weights of layer 0, expert "}},
      {WrongFrame::other_expert, {"layer 0: weights of layer 0, expert "}},
      {WrongFrame::other_shared, {"layer 0: weights of layer 0, expert "}},
  };
  for (const Case& of : cases) {
    INFO("case " << static_cast<int>(of.wrong));
    RankOptions options;
    options.world.ranks = 2;
    const auto ends = run_ranks(options, [&](World& world) {
      if (world.rank() == 1) {
        give_all(world, 3, 1, 2);
      } else {
        WorldOfFrames other(world, of.wrong);
        give_all(other, 3, 1, 2);
      }
    });
    for (const RankEnd& end : ends) {
      INFO(end.line);
      CHECK(end.code == ExitCode::device);
      CHECK_FALSE(end.bug);
      CHECK(end.line == ends.front().line);
      CHECK(end.line.find('\n') == end.line.npos);
      for (const std::string& part : of.parts) CHECK(end.line.find(part) != end.line.npos);
      // Both ranks may notice another shared expert first, since each has frames of the other's.
      const bool of_any = of.wrong == WrongFrame::other_shared;
      CHECK(end.line.find(of_any ? "from rank " : "from rank 0 ") != end.line.npos);
      const auto version_after = [&](const std::string& words) {
        const size_t begin = end.line.find(words);
        REQUIRE(begin != end.line.npos);
        return end.line.substr(begin + words.size());
      };
      // "expert 3 of step 3, shared expert 0123456789abcdef", of what came and of what was expected.
      const std::string came = version_after(", expert "), due = version_after("expected expert ");
      const auto shared = [](const std::string& version) {
        const std::string words = "shared expert ";
        return version.substr(version.find(words) + words.size(), 16);
      };
      CHECK((came[0] != due[0]) == (of.wrong == WrongFrame::other_expert));
      // The weights of both steps are the same, and so are their shared experts.
      const bool other_shared =
          of.wrong == WrongFrame::other_layer || of.wrong == WrongFrame::other_shared;
      CHECK((shared(came) != shared(due)) == other_shared);
    }
  }
}

}  // namespace hearth::test
