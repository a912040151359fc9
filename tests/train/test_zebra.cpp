// Ranks of which some compute attention and the others experts (--parallel zebra): the bits of one rank.
#include <algorithm>
#include <catch2/catch_approx.hpp>
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

/// Ranks, and how many of them compute attention.
void check_bits(RanksFixture& f, const TrainedWith& with, int64_t shards,
                const std::vector<std::pair<int64_t, int64_t>>& roles) {
  std::vector<RanksFixture::Way> ways;
  for (const auto& [ranks, attention] : roles) ways.push_back({ranks, "zebra", attention});
  f.check_bits(with, shards, ways);
}

}  // namespace

TEST_CASE("zebra: the bits of one rank\\, in every family") {
  RanksFixture f;
  const TrainedWith bf16{"tied", {}, ComputeChoice::bf16}, olmoe{"olmoe"}, mixtral{"mixtral", 0.2};
  if (kSanitized) return check_bits(f, kLora, 4, {{4, 2}});
  check_bits(f, kFull, 8, {{2, 1}, {4, 2}, {4, 1}, {6, 4}, {3, 2}});
  check_bits(f, kLora, 4, {{4, 2}, {3, 1}});
  check_bits(f, bf16, 4, {{4, 2}, {6, 4}});
  check_bits(f, olmoe, 4, {{4, 2}});  // 5 experts
  check_bits(f, mixtral, 4, {{4, 1}});
}

TEST_CASE("zebra: several shards a rank\\, groups and recompute change no bit") {
  RanksFixture().check_groups({3, "zebra", 2});
}

TEST_CASE("zebra: ranks whose experts get no token\\, and one with all experts") {
  RanksFixture f;
  for (const TrainedWith& with : {kFull, kLora}) {
    make_routing_one_sided(f.dir / with.family);  // two of 6 experts have all tokens
    check_bits(f, with, 2, {{4, 1}, {4, 2}, {2, 1}});
    if (kSanitized) return;
    f.set_expert_shift(
        {with.family == kFull.family ? std::vector<int32_t>{1, 0, 2} : std::vector<int32_t>{2, 1}});
    check_bits(f, with, 2, {{4, 2}});  // these move, and expert ranks get no token
    f.set_expert_shift(std::vector<int32_t>());
  }
}

TEST_CASE("zebra: a run goes on with other roles") {
  RanksFixture().check_path(kFull, {{4, "zebra", 2}, {3, "zebra", 1}, {4, "ep"}, {6, "zebra", 4}});
}

namespace {

/// Ranks, how many of them compute attention, and how many share the experts in each group.
struct Groups {
  int64_t ranks, attention, expert_ranks;
};

TrainConfig config_of(RanksFixture& f, const TrainedWith& with, const Groups& groups,
                      const std::string& out) {
  f.set_mode("zebra", groups.attention);
  TrainConfig config = f.config_of(with, out, 4, groups.ranks);
  config.expert_ranks = groups.expert_ranks;
  return config;
}

}  // namespace

TEST_CASE("zebra: groups beside each other have the bits of one rank") {
  RanksFixture f;
  const auto check = [&](const TrainedWith& with, const std::vector<Groups>& ways) {
    const RunBits expected = f.bits_of(with, 4, 1);
    REQUIRE(expected.steps.size() == 3);
    for (const Groups& groups : ways) {
      INFO(text_of(with, {}) << " on " << groups.ranks << " ranks, " << groups.attention << ", "
                             << groups.expert_ranks);
      const TrainConfig config = config_of(f, with, groups, "run");
      CHECK(f.bits_of(config) == expected);
      remove_tree(config.out);
    }
  };
  if (kSanitized) return check(kLora, {{4, 2, 1}});
  check(kFull, {{4, 2, 1}, {6, 2, 2}, {6, 4, 1}, {8, 4, 2}, {8, 4, 1}});
  check(kLora, {{4, 2, 1}, {6, 2, 2}});
  check({"tied", {}, ComputeChoice::bf16}, {{6, 2, 2}});
  f.set_expert_shift({{2, 0, 1}});
  check(kFull, {{8, 4, 2}, {6, 2, 2}});
  f.set_expert_shift(std::nullopt);
  check(kFull, {{8, 4, 2}});
}

TEST_CASE("zebra: each group has all experts\\, and a run goes on with other groups") {
  RanksFixture f;
  const TrainConfig config = config_of(f, kFull, {6, 2, 2}, "run");
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  const JsonArray& ranks = plan.find("ranks")->as_array();
  const auto experts = [&](size_t rank) {
    return ranks[rank].find("experts")->as_array()[0].dump();
  };
  CHECK(experts(0) == "[]");
  CHECK(experts(2) == "[0, 1, 2]");
  CHECK(experts(3) == "[3, 4, 5]");
  CHECK(experts(4) == "[0, 1, 2]");
  CHECK(experts(5) == "[3, 4, 5]");
  CHECK(ranks[1].find("shards")->dump() == "[2, 3]");

  const RankShards shards = run.model.plan.shards;
  CHECK(shards.groups() == 2);
  const std::vector<std::vector<int32_t>> groups = {{0, 2, 3}, {1, 4, 5}};
  for (const std::vector<int32_t>& group : groups) {
    for (const int32_t rank : group) {
      for (int32_t position = 0; position < 3; ++position) {
        CHECK(shards.member(rank, position) == group[static_cast<size_t>(position)]);
      }
      CHECK(group[static_cast<size_t>(shards.position_of(rank))] == rank);
    }
  }

  TrainConfig whole = f.config_of(kFull, "whole", 4, 1);
  REQUIRE(f.run(whole) == ExitCode::done);
  TrainConfig parts = config_of(f, kFull, {6, 2, 2}, "parts");
  REQUIRE(f.run_until(parts, 1) == ExitCode::stopped);
  parts = config_of(f, kFull, {4, 2, 1}, "parts");
  REQUIRE(f.run_until(parts, 2) == ExitCode::stopped);
  parts = config_of(f, kFull, {4, 2, 0}, "parts");
  REQUIRE(f.run(parts) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.result("parts") == f.result("whole"));
}

TEST_CASE("zebra: in each round a rank has one guest\\, and is one rank's guest") {
  for (const auto& [ranks, attention] : std::vector<std::pair<int32_t, int32_t>>{
           {2, 1}, {4, 2}, {6, 3}, {3, 1}, {3, 2}, {6, 2}, {6, 4}, {8, 2}, {12, 9}, {4, 0}}) {
    INFO(ranks << " ranks, " << attention);
    std::vector<std::set<int32_t>> guests(static_cast<size_t>(ranks));
    for (int32_t round = 0; round < ranks; ++round) {
      std::set<int32_t> at_once;
      int32_t serving = 0;
      for (int32_t at = 0; at < ranks; ++at) {
        const ExpertRanks own{ranks, at, attention};
        const int32_t guest = own.guest_of(round), host = own.host_of(guest);
        at_once.insert(guest);
        guests[static_cast<size_t>(at)].insert(guest);
        CHECK(own.round_of(guest) == round);
        CHECK((ExpertRanks{ranks, host, attention}.guest_of(round) == at));
        if (own.serves(guest)) ++serving;
      }
      CHECK(std::ssize(at_once) == ranks);
      if (attention == 0) continue;
      // As many as the smaller role has, or none: so no rank waits while others have a guest.
      const int32_t few = std::min(attention, ranks - attention);
      const bool none = 2 * few == ranks ? round < few : round % (ranks / few) == 0;
      CHECK(serving == (none ? 0 : few));
    }
    for (const std::set<int32_t>& of : guests) CHECK(std::ssize(of) == ranks);
  }
}

TEST_CASE("zebra: metrics say how busy the ranks of either role are") {
  RanksFixture f;
  f.set_mode("zebra", 1);
  REQUIRE(f.run(f.config_of(kFull, "run", 3, 3)) == ExitCode::done);
  for (const std::string& text : f.lines("run/metrics.jsonl")) {
    const Json line = parse_json(text, "a line");
    const JsonArray& ranks = line.find("ranks")->as_array();
    REQUIRE(ranks.size() == 3);
    double computes[2] = {0, 0}, all[2] = {0, 0};
    for (size_t rank = 0; rank < 3; ++rank) {
      const size_t role = rank == 0 ? 0 : 1;
      CHECK(ranks[rank].find("role")->as_string() == (role == 0 ? "attention" : "experts"));
      all[role] += ranks[rank].find("time_s")->as_double();
      computes[role] +=
          ranks[rank].find("time_s")->as_double() - ranks[rank].find("wait_s")->as_double();
    }
    const Json& use = *line.find("utilisation");
    CHECK(use.find("attention")->as_double() == Catch::Approx(computes[0] / all[0]));
    CHECK(use.find("experts")->as_double() == Catch::Approx(computes[1] / all[1]));
    CHECK(use.find("experts")->as_double() > 0);
  }
  f.set_mode("dp");
  REQUIRE(f.run(f.config_of(kFull, "dp", 3, 3)) == ExitCode::done);
  CHECK(f.lines("dp/metrics.jsonl").front().find("role") == std::string::npos);
  CHECK(f.lines("dp/metrics.jsonl").front().find("utilisation") == std::string::npos);
}

TEST_CASE("zebra: the plan says who does what\\, and a rank has no more than that") {
  RanksFixture f;
  f.set_mode("zebra", 1);
  const TrainConfig config = f.config_of(kFull, "run", 4, 4);  // 6 experts on 3 ranks
  RecordingReporter reporter;
  PlannedRun run(config, open_model(config), reporter);
  const Json plan = plan_json(run.model, run.times, run.model.plan.places);
  const JsonArray& roles = plan.find("roles")->as_array();
  REQUIRE(roles.size() == 4);
  CHECK(roles[0].find("role")->as_string() == "attention");
  CHECK(roles[3].find("role")->as_string() == "experts");
  const JsonArray& ranks = plan.find("ranks")->as_array();
  CHECK(ranks[0].find("shards")->dump() == "[0, 3]");
  CHECK(ranks[0].find("experts")->as_array()[0].dump() == "[]");
  CHECK(ranks[2].find("shards")->dump() == "[]");
  CHECK(ranks[2].find("experts")->as_array()[0].dump() == "[2, 3]");

  RankShards shards = run.model.plan.shards;
  for (int32_t rank = 1; rank < 4; ++rank) {
    ParameterTable table = run.model.table;
    shards.rank = rank;
    own_blocks(table, shards);
    for (BlockId b = 0; b < std::ssize(table.blocks()); ++b) {
      const Block& block = table.block(b);
      const bool own = block.kind == BlockKind::expert && block.expert / 2 == rank - 1;
      CHECK(block.present == own);
      CHECK(block.owned == own);
    }
  }
}

TEST_CASE("zebra: what does not go together is refused") {
  RanksFixture f;
  f.set_mode("zebra", 2);
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", 8, 4), part, change);
  };
  refused("go together", [](TrainConfig& c) { c.attention_ranks = 0; });
  refused("go together", [](TrainConfig& c) { c.parallel = "dp"; });
  refused("some must be left", [](TrainConfig& c) { c.attention_ranks = 4; });
  refused("1 and 4 would do", [](TrainConfig& c) {  // 2 of 5
    c.thread_ranks = 5;
    c.attention_ranks = 2;
  });
  refused("; 1 would do", [](TrainConfig& c) {  // 4 of 5 go with the ranks, not with the shards
    c.thread_ranks = 5;
    c.attention_ranks = 2;
    c.logical_shards = 2;
  });
  refused("does not divide the logical shards", [](TrainConfig& c) { c.attention_ranks = 3; });
  refused("1 and 2 would do", [](TrainConfig& c) {  // 3 of 4 do not divide 8
    c.attention_ranks = 3;
    c.logical_shards = {};
  });
  refused("2 expert ranks and 2 attention ranks make no groups",
          [](TrainConfig& c) { c.expert_ranks = 3; });
  refused("; 1 and 2 would do", [](TrainConfig& c) { c.expert_ranks = 3; });
  refused("needs several ranks", [](TrainConfig& c) { c.thread_ranks = 1; });
  refused("fewer than the 7 ranks that are left for them; 2 and 4 would do", [](TrainConfig& c) {
    c.thread_ranks = 8;
    c.attention_ranks = 1;
  });
  refused("fewer than the 7 ranks that are left for them; use fewer ranks", [](TrainConfig& c) {
    c.thread_ranks = 8;
    c.attention_ranks = 1;
    c.logical_shards = 1;
  });
}

TEST_CASE("zebra: one attention rank has one logical shard unless more are asked for") {
  RanksFixture f;
  TrainConfig one = f.config_of(kFull, "one", 1, 1);
  one.grad_accum = 4;
  const RunBits expected = f.bits_of(one);
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("zebra", 1);
  TrainConfig two = f.config_of(kFull, "two", 1, 2);
  two.grad_accum = 4;
  two.logical_shards = {};
  CHECK(f.bits_of(two) == expected);
}

TEST_CASE("zebra: a rank that trains nothing") {
  RanksFixture f;
  for (const char* targets : {"experts", "attention"}) {
    f.set_mode("dp");
    const auto config = [&](const std::string& out, int64_t ranks) {
      TrainConfig c = f.config_of(kLora, out, 4, ranks);
      c.lora_targets = {targets};
      if (c.lora_targets.front() == "attention") c.expert_rank = {};
      return c;
    };
    const RunBits expected = f.bits_of(config(std::string("one-") + targets, 1));
    REQUIRE(expected.steps.size() == 3);
    f.set_mode("zebra", 2);
    INFO(targets);
    CHECK(f.bits_of(config(std::string("four-") + targets, 4)) == expected);
    f.set_mode("ep");
    CHECK(f.bits_of(config(std::string("ep-") + targets, 4)) == expected);
  }
}

TEST_CASE("zebra: an error of a rank ends all\\, whoever waits for whom") {
  RanksFixture f;
  f.set_mode("zebra", 2);
  const BodyOfFaultyRank faulty(TaskKind::experts, [](const Body& right, const BodyContext& c) {
    if (c.layer == 1 && c.phase == Phase::backward && c.ranks->experts(c.layer).position == 3) {
      throw storage_error("no more memory");
    }
    right.run(c);
  });
  const TrainConfig config = f.config_of(TrainedWith{"mixtral"}, "run", 4, 4);
  const Raised raised = raised_by([&] { f.run(config); });
  INFO(raised.message);
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("no more memory"));
}

TEST_CASE("zebra: faults of one rank are caught") {
  RanksFixture f;
  const TrainedWith with{"mixtral"};
  const RunBits expected = f.bits_of(with, 4, 1);
  REQUIRE(expected.steps.size() == 3);
  f.set_mode("zebra", 2);
  const auto caught = [&](TaskKind kind, BodyOfFaultyRank::Run run) {
    const BodyOfFaultyRank faulty(kind, run);
    RunBits bits;
    const Raised raised = raised_by([&] { bits = f.bits_of(with, 4, 4); });
    INFO(raised.message);
    return raised.code == ExitCode::internal ? raised.says(" of step 1") : bits != expected;
  };
  CHECK(caught(TaskKind::experts, [](const Body& right, const BodyContext& c) {
    if (c.phase != Phase::backward || c.part.place != 1) right.run(c);  // of the second rank
  }));
  CHECK(caught(TaskKind::experts, [](const Body& right, const BodyContext& c) {
    BodyContext other = c;  // the rows of the one add to the gradients of the other
    other.part.place = 0;
    if (c.phase == Phase::backward) right.run(other);
    if (c.phase != Phase::backward) right.run(c);
  }));
  CHECK(f.bits_of(with, 4, 4) == expected);
}

}  // namespace hearth::test
