// Ranks whose domains hold the same experts (--parallel hybrid-ep): the bits of one rank, whatever the
// levels and the domains, what the plan says, and what is refused.
#include <catch2/catch_test_macros.hpp>

#include "base/json.h"
#include "base/sanitized.h"
#include "budget/plan_report.h"
#include "train/planned_run.h"
#include "train/ranks_fixture.h"

namespace hearth::test {
namespace {

/// Ranks by level, and how many of each are a domain.
struct Domains {
  std::vector<int32_t> levels, domains;
};

int64_t ranks_of(const Domains& of) {
  int64_t ranks = 1;
  for (const int32_t level : of.levels) ranks *= level;
  return ranks;
}

std::string text_of(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t number : numbers) text += std::to_string(number) + " ";
  return text;
}

class DomainsFixture : public RanksFixture {
 public:
  TrainConfig config_of(const TrainedWith& with, const std::string& out, int64_t shards,
                        const Domains& of) {
    set_mode("hybrid-ep");
    TrainConfig config = RanksFixture::config_of(with, out, shards, ranks_of(of));
    if (config.thread_ranks == 1) return config;
    config.levels = of.levels;
    config.domains = of.domains;
    return config;
  }

  void check_domains(const TrainedWith& with, int64_t shards, const std::vector<Domains>& ways) {
    const RunBits expected = bits_of(with, shards, 1);
    REQUIRE(expected.steps.size() == 3);
    for (const Domains& way : ways) {
      INFO(with.family << ": levels " << text_of(way.levels) << "domains " << text_of(way.domains));
      const TrainConfig config = config_of(with, "domains", shards, way);
      CHECK(RanksFixture::bits_of(config) == expected);
      remove_tree(config.out);
    }
  }
  using RanksFixture::bits_of;
};

Json plan_with_domains(const TrainConfig& config) {
  RecordingReporter reporter;
  const PlannedRun run(config, open_model(config), reporter, Planning::sizes);
  return plan_json(run.model, run.times, run.model.plan.places);
}

}  // namespace

TEST_CASE("expert domains: the bits of one rank\\, in every family") {
  DomainsFixture f;
  const TrainedWith bf16{"tied", {}, ComputeChoice::bf16}, olmoe{"olmoe"}, mixtral{"mixtral", 0.2};
  if (kSanitized) return f.check_domains(kLora, 4, {{{2, 2}, {1, 2}}});
  f.check_domains(kFull, 8,
                  {{{4}, {1}},
                   {{4}, {2}},
                   {{4}, {4}},
                   {{2, 2}, {1, 2}},
                   {{2, 2}, {2, 1}},
                   {{2, 4}, {1, 2}},
                   {{2, 4}, {2, 2}},
                   {{2, 2, 2}, {1, 2, 1}}});
  f.check_domains(kLora, 8, {{{2, 2}, {1, 2}}, {{2, 4}, {1, 4}}, {{8}, {2}}});
  f.check_domains(bf16, 8, {{{2, 2}, {1, 2}}, {{2, 4}, {1, 2}}});
  f.check_domains(olmoe, 4, {{{4}, {2}}, {{2, 2}, {1, 2}}});  // 5 experts
  f.check_domains(mixtral, 4, {{{2, 2}, {1, 2}}});
}

TEST_CASE("expert domains: several shards a rank\\, and shards that are no power of two") {
  DomainsFixture f;
  if (kSanitized) return f.check_domains(kFull, 12, {{{2, 3}, {2, 1}}});
  f.check_domains(kFull, 12, {{{2, 3}, {1, 3}}, {{2, 3}, {2, 1}}, {{3, 2}, {1, 2}}});
  f.check_domains(kLora, 15, {{{3, 5}, {1, 5}}, {{5, 3}, {5, 1}}});
}

TEST_CASE("expert domains: a run goes on with other ranks and other domains") {
  DomainsFixture f;
  for (const TrainedWith& with : {kFull, TrainedWith{"tied", {}, ComputeChoice::bf16}}) {
    TrainConfig whole = f.RanksFixture::config_of(with, "whole" + with.family, 8, 1);
    whole.steps = 5;
    REQUIRE(f.run(whole) == ExitCode::done);
    const std::vector<Domains> path{
        {{2, 2}, {1, 2}}, {{8}, {2}}, {{1}, {1}}, {{4}, {4}}, {{2, 4}, {2, 1}}};
    for (size_t i = 0; i < path.size(); ++i) {
      TrainConfig part = f.config_of(with, "parts" + with.family, 8, path[i]);
      part.steps = whole.steps;
      const bool last = i + 1 == path.size();
      INFO("step " << i + 1);
      REQUIRE((last ? f.run(part) : f.run_until(part, static_cast<int64_t>(i) + 1)) ==
              (last ? ExitCode::done : ExitCode::stopped));
    }
    CHECK(f.root("parts" + with.family) == f.root("whole" + with.family));
    CHECK(f.result("parts" + with.family) == f.result("whole" + with.family));
  }
}

TEST_CASE("expert domains: the plan says which they are\\, and what they move") {
  DomainsFixture f;
  const auto volume = [](const Json& plan, const char* key) {
    return plan.find("volumes")->find(key)->as_double();
  };
  const auto plan_of = [&](const Domains& of) {
    return plan_with_domains(f.config_of(kFull, "planned", 8, of));
  };
  const Json apart = plan_of({{4}, {1}}), pairs = plan_of({{2, 2}, {1, 2}}),
             all = plan_of({{4}, {4}});
  CHECK(pairs.find("levels")->dump() == "[2, 2]");
  CHECK(pairs.find("domains")->dump() == "[1, 2]");
  CHECK(apart.find("p")->as_double() == 1);
  CHECK(pairs.find("p")->as_double() == 2.0 / 3);
  CHECK(all.find("p")->as_double() == 0);
  CHECK(volume(apart, "experts") == 0);
  CHECK(volume(apart, "gradients") == 0);
  CHECK(volume(all, "tokens") == 0);
  // Weights go to each that holds the expert; of each rank's rows as many travel as there are domains.
  CHECK(volume(all, "experts") == 3 * volume(pairs, "experts"));
  CHECK(3 * volume(pairs, "tokens") == 2 * volume(apart, "tokens"));
  // Every expert is at two ranks, which are in different halves of a group.
  const auto experts = [](const Json& plan, size_t rank) {
    return plan.find("ranks")->as_array()[rank].find("experts")->dump();
  };
  CHECK(experts(pairs, 0) == experts(pairs, 1));
  CHECK(experts(pairs, 2) == experts(pairs, 3));
  CHECK(experts(pairs, 0) != experts(pairs, 2));
}

TEST_CASE("expert domains: auto takes domains where the simulator says that they are faster") {
  DomainsFixture f;
  const auto chosen = [&](const LinkRate& links, int64_t accumulated) {
    TrainConfig config = f.config_of(kLora, "planned", 4, {{4}, {1}});
    config.grad_accum = accumulated;
    config.domains.reset();
    config.rank_links = links;
    return plan_with_domains(config);
  };
  // Adapters are a few kB, but the rows of many micro-batches are not.
  const Json slow = chosen({1e5, 1e-3}, 64);
  CHECK(slow.find("domains")->dump() == "[4]");
  double before = 0;
  for (const Json& each : slow.find("domain_choice")->as_array()) {
    CHECK(each.find("fits")->as_bool());
    const double time = each.find("time_s")->as_double();
    CHECK((before == 0 || time < before));
    before = time;
  }
}

TEST_CASE("expert domains: sizes and levels that cannot be are refused with what would do") {
  DomainsFixture f;
  const auto refused = [&](const std::string& part, const auto& change) {
    f.check_refused(f.config_of(kFull, "refused", 4, {{4}, {2}}), part, change);
  };
  refused("1, 2 or 4 would do", [](TrainConfig& c) { c.domains = {{3}}; });
  refused("a number for each level", [](TrainConfig& c) { c.domains = {{2, 2}}; });
  refused("their product is 6", [](TrainConfig& c) { c.levels = {2, 3}; });
  refused("expert domains are those of", [](TrainConfig& c) { c.parallel = "ep"; });
  refused("expert domains are those of", [](TrainConfig& c) {
    c.parallel = "ep";
    c.domains.reset();
  });
  refused("fewer than the 8 ranks", [](TrainConfig& c) {
    c.thread_ranks = c.grad_accum = 8;
    c.logical_shards = 8;
    c.levels = {8};
    c.domains = {{1}};
  });
}

}  // namespace hearth::test
