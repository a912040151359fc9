// Ranks that share the routed experts (--parallel ep): the bits of one rank, the bytes that rows take,
// and no more experts in memory than a rank computes.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "runtime/shared_parameters.h"
#include "train/faulty_rank.h"
#include "train/one_sided_routing.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

/// Ranks, and how many of them share experts.
void check_bits(RanksFixture& f, const TrainedWith& with, int64_t shards,
                const std::vector<std::pair<int64_t, int64_t>>& sharing) {
  std::vector<RanksFixture::Way> ways;
  for (const auto& [ranks, expert_ranks] : sharing) ways.push_back({ranks, "ep", expert_ranks});
  f.check_bits(with, shards, ways);
}

}  // namespace

TEST_CASE("expert ranks: the bits of one rank\\, in every family") {
  RanksFixture f;
  const TrainedWith bf16{"tied", {}, ComputeChoice::bf16}, olmoe{"olmoe"}, mixtral{"mixtral", 0.2};
  if (kSanitized) return check_bits(f, kLora, 4, {{4, 2}});
  check_bits(f, kFull, 8, {{2, 2}, {4, 4}, {4, 2}, {8, 4}});
  check_bits(f, kLora, 8, {{2, 2}, {4, 2}});
  check_bits(f, bf16, 8, {{4, 4}, {8, 2}});
  check_bits(f, olmoe, 4, {{4, 4}, {4, 2}});  // 5 experts
  check_bits(f, mixtral, 4, {{4, 4}});
}

TEST_CASE("expert ranks: logical shards that are no power of two") {
  RanksFixture f;
  if (kSanitized) return check_bits(f, kFull, 15, {{3, 3}});
  check_bits(f, kFull, 15, {{3, 3}, {5, 5}, {15, 5}, {15, 3}});
  check_bits(f, kLora, 6, {{6, 3}, {6, 2}});
}

TEST_CASE("expert ranks: several shards a rank\\, groups and recompute change no bit") {
  RanksFixture().check_groups({2, "ep"});
}

TEST_CASE("expert ranks: ranks whose experts get no token") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, kLora}) {
    make_routing_one_sided(f.dir / with.family);
    check_bits(f, with, 3, {{3, 3}});
    // Else the case would prove nothing: at the first step, two experts have all tokens.
    f.set_mode("ep");
    TrainConfig config = f.config_of(with, "shown" + with.family, 3, 3);
    config.tokens_by_expert = true;
    REQUIRE(f.run(config) == ExitCode::done);
    const Json line =
        parse_json(f.lines("shown" + with.family + "/metrics.jsonl").front(), "a line");
    for (const Json& layer : line.find("tokens_by_expert")->as_array()) {
      const JsonArray& experts = layer.as_array();
      for (size_t e = 2; e < experts.size(); ++e) CHECK(experts[e].as_double() == 0);
    }
  }
}

TEST_CASE("expert ranks: a run goes on with other ranks that share experts or do not") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    f.check_path(with, {{4, "ep", 4}, {1}, {4, "ep", 2}, {2, "dp"}, {2, "ep"}});
  }
}

TEST_CASE("expert ranks: evaluations during a run are of the weights of all ranks") {
  RanksFixture f;
  const auto losses = [&](int64_t ranks) {
    TrainConfig config = f.config_of(kFull, "run" + std::to_string(ranks), 4, ranks);
    config.steps = 4;
    config.eval_every = {1, std::nullopt};
    config.eval_at_start = true;
    config.digest_every = 2;
    REQUIRE(f.run(config) == ExitCode::done);
    std::string all;
    for (const std::string& text : f.lines("run" + std::to_string(ranks) + "/metrics.jsonl")) {
      const Json line = parse_json(text, "a line");
      all += " " + line.find("eval_loss")->dump();
      if (const Json* const digest = line.find("state_digest")) all += " " + digest->dump();
    }
    return all;
  };
  const std::string expected = losses(1);
  f.set_mode("ep");
  CHECK(losses(4) == expected);
}

TEST_CASE("expert ranks: a routed row that leaves its rank moves two vectors each way") {
  RanksFixture f;
  f.set_mode("ep");
  TrainConfig config = f.config_of(kLora, "run", 2, 2);
  config.recompute = Recompute::none;
  config.tokens_by_expert = true;
  config.steps = 1;
  REQUIRE(f.run(config) == ExitCode::done);
  const Json line = parse_json(f.lines("run/metrics.jsonl").front(), "a line");
  const Json& bytes = *line.find("bytes");
  const double sum =
      bytes.find("0/host->1/host")->as_double() + bytes.find("1/host->0/host")->as_double();
  // What each rank's own rows are is not in metrics: all rows that leave are between none and all.
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const ModelSpec& spec = run.model.opened->spec;
  const double rows = line.find("tokens")->as_double() *
                      static_cast<double>(spec.experts_per_token * spec.moe_layers());
  const double row = 4 * 4 * static_cast<double>(spec.hidden) + 32;
  int64_t parameters = 0;
  for (const Tensor& t : run.model.table.tensors()) parameters += t.trainable ? t.size() : 0;
  CHECK(sum > 0.1 * rows * 4 * 4 * static_cast<double>(spec.hidden));
  CHECK(sum <= 1.03 * (rows * row + 8 * static_cast<double>(parameters)) + 2 * 4096);
}

TEST_CASE("expert ranks: a rank has its own experts alone\\, and the plan says which") {
  RanksFixture f;
  f.set_mode("ep");
  const TrainConfig config = f.config_of(kFull, "run", 4, 4);  // 6 experts
  RecordingReporter reporter;
  PlannedRun run(config, open_model(config), reporter);
  const ParameterTable& whole = run.model.table;
  for (int32_t rank = 1; rank < 4; ++rank) {
    ParameterTable table = whole;
    own_blocks(table, {4, 4, rank, true, 4});
    const auto [first, last] = ExpertRanks{4, rank}.own(6);
    for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
      const Block& block = table.block(b);
      if (block.kind != BlockKind::expert) {
        CHECK(block.present);
        continue;
      }
      CHECK(block.present == (block.expert >= first && block.expert < last));
      CHECK(block.owned == block.present);
    }
  }
  std::multiset<int64_t> experts;
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  for (const Json& rank : plan.find("ranks")->as_array()) {
    for (const Json& number : rank.find("experts")->as_array()[0].as_array()) {
      experts.insert(number.as_int());
    }
  }
  CHECK(experts == std::multiset<int64_t>{0, 1, 2, 3, 4, 5});

  REQUIRE(f.run(config) == ExitCode::done);
  const Json written = parse_json(read_file(f.dir / "run/plan.json"), "plan");
  const double planned = other_hosts(written, "peak_bytes");
  const double measured = other_hosts(written, "measured_peak_bytes");
  INFO("planned " << planned << ", measured " << measured);
  CHECK(measured > 0);
  if (!kSanitized) CHECK(measured < planned * 1.01);
}

TEST_CASE("expert ranks: what does not go together is refused") {
  RanksFixture f;
  f.set_mode("ep");
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", 8, 8), part, change);
  };
  refused("4 would do", [](TrainConfig&) {});  // 8 ranks, 6 experts
  refused("1, 2, 4 and 8 would do", [](TrainConfig& c) { c.expert_ranks = 3; });
  refused("ranks share experts with", [](TrainConfig& c) {
    c.parallel = "dp";
    c.expert_ranks = 2;
  });
}

namespace {

/// The rows of all ranks add to one gradient.
class OneGradient final : public RankWork {
 public:
  explicit OneGradient(RankWork& right) : right_(right) {}
  ExpertRanks experts(int32_t layer) const override { return right_.experts(layer); }
  void exchange(Stream& stream, Place place, RowsGo go, std::span<const SentRows> out,
                std::span<const ReceivedRows> in) override {
    right_.exchange(stream, place, go, out, in);
  }
  View gradient_for(int32_t, View own) const override { return own; }
  void end_shard(const OpSet&, Stream&, Place, int32_t) override {}
  void reduce(const OpSet&, Stream&, std::span<const BlockId>) override {}
  void gather_norms(View) override {}
  void give(Stream&, std::span<const BlockId>) override {}
  void fetch(Stream&, std::span<const BlockId>, std::span<const View>) override {}

 private:
  RankWork& right_;
};

}  // namespace

TEST_CASE("expert ranks: faults of one rank are caught") {
  RanksFixture f;
  const TrainedWith with{"mixtral"};
  const RunBits expected = f.bits_of(with, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("ep");
  const auto caught = [&](TaskKind kind, BodyOfFaultyRank::Run run) {
    const BodyOfFaultyRank faulty(kind, run);
    RunBits bits;
    const Raised raised = raised_by([&] { bits = f.bits_of(with, 4, 4); });
    INFO(raised.message);
    return raised.code == ExitCode::internal ? raised.says(" of step 1") : bits != expected;
  };
  const BodyOfFaultyRank::Run skipped = [](const Body& right, const BodyContext& c) {
    if (!at_owner_of_embedding(c) || c.layer != 1) right.run(c);
  };
  CHECK(caught(TaskKind::send_counts, skipped));
  CHECK(caught(TaskKind::send_rows, skipped));
  CHECK(caught(TaskKind::return_rows, skipped));
  CHECK(caught(TaskKind::experts, [](const Body& right, const BodyContext& c) {
    BodyContext other = c;
    OneGradient one(*c.ranks);
    other.ranks = &one;
    right.run(other);
  }));
  CHECK(caught(TaskKind::experts, [](const Body& right, const BodyContext& c) {
    if (c.phase != Phase::backward || !c.part.guests) right.run(c);  // guests are left out
  }));
  CHECK(f.bits_of(with, 4, 4) == expected);
}

}  // namespace hearth::test
