// Expert domains (comm/expert_domains.h): the properties of HybridEP's partition, and its Table VII.
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>
#include <stdexcept>

#include "comm/owners.h"

namespace hearth::test {
namespace {

/// Some levels of random sizes, and domains that divide them.
ExpertDomains random_domains(std::mt19937& random) {
  const auto one_of = [&](int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random);
  };
  std::vector<DomainLevel> levels;
  for (int32_t count = one_of(1, 3); count > 0; --count) {
    DomainLevel level{one_of(1, 6), 1};
    do {
      level.domain = one_of(1, level.ranks);
    } while (level.ranks % level.domain != 0);
    levels.push_back(level);
  }
  return ExpertDomains(levels);
}

int32_t distance(const ExpertDomains& domains, int32_t a, int32_t b, bool of_domain) {
  int32_t differ = 0;
  for (size_t l = domains.levels().size(); l-- > 0;) {
    const DomainLevel& level = domains.levels()[l];
    const int32_t x = a % level.ranks, y = b % level.ranks, n = level.domains();
    differ += (of_domain ? x % n != y % n : x / n != y / n) ? 1 : 0;
    a /= level.ranks;
    b /= level.ranks;
  }
  return differ;
}

}  // namespace

TEST_CASE(
    "expert domains: Table VII of the paper\\, pairs of ranks that exchange rows or experts") {
  struct Row {
    int32_t ranks;
    std::vector<std::pair<int32_t, int32_t>> pairs;  // rows, experts; by domain size 1, 2, 4, ...
  };
  const std::vector<Row> table{
      {8, {{56, 0}, {24, 8}, {8, 24}, {0, 56}}},
      {16, {{240, 0}, {112, 16}, {48, 48}, {16, 112}, {0, 240}}},
      {32, {{992, 0}, {480, 32}, {224, 96}, {96, 224}, {32, 480}, {0, 992}}}};
  for (const Row& row : table) {
    int32_t size = 1;
    for (const auto& [rows, experts] : row.pairs) {
      const ExpertDomains domains({{row.ranks, size}});
      int32_t exchange = 0, gather = 0;
      for (int32_t a = 0; a < row.ranks; ++a) {
        for (int32_t b = 0; b < row.ranks; ++b) {
          exchange += a != b && domains.offset(a) == domains.offset(b) ? 1 : 0;
          gather += a != b && domains.position(a) == domains.position(b) ? 1 : 0;
        }
      }
      CHECK(exchange == rows);
      CHECK(gather == experts);
      // With each pair go the rows for the experts of a domain.
      CHECK(domains.travelling_share() ==
            static_cast<double>(size * rows) / (row.ranks * (row.ranks - 1)));
      size *= 2;
    }
  }
}

TEST_CASE("expert domains: each row has one server\\, which holds the owner's experts") {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const ExpertDomains domains = random_domains(random);
    std::set<std::pair<int32_t, int32_t>> places;
    for (int32_t rank = 0; rank < domains.ranks(); ++rank) {
      const int32_t position = domains.position(rank), offset = domains.offset(rank);
      REQUIRE(domains.rank_at(position, offset) == rank);
      CHECK(position < domains.sharing());
      CHECK(offset < domains.size());
      places.emplace(position, offset);
    }
    CHECK(std::ssize(places) == domains.ranks());
    for (int32_t owner = 0; owner < domains.ranks(); ++owner) {
      for (int32_t source = 0; source < domains.ranks(); ++source) {
        const int32_t server = domains.server(owner, source);
        // The only rank with the owner's domains and the source's numbers in them.
        CHECK(distance(domains, server, owner, true) == 0);
        CHECK(distance(domains, server, source, false) == 0);
        CHECK(std::ssize(domains.hops(owner, source)) == distance(domains, server, source, true));
        CHECK(domains.hops(owner, source).empty() == (server == source));
      }
    }
  }
}

TEST_CASE("expert domains: rows that pass a level do not depend on the domains of others") {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    const ExpertDomains domains = random_domains(random);
    for (size_t l = 0; l < domains.levels().size(); ++l) {
      const DomainLevel& level = domains.levels()[l];
      int64_t hops = 0;
      for (int32_t owner = 0; owner < domains.ranks(); ++owner) {
        for (int32_t source = 0; source < domains.ranks(); ++source) {
          for (const int32_t hop : domains.hops(owner, source)) {
            hops += hop == static_cast<int32_t>(l) ? 1 : 0;
          }
        }
      }
      // D (1 - S_l / G_l) of each rank's D, which goes evenly to all owners.
      const int64_t all = int64_t{domains.ranks()} * domains.ranks();
      CHECK(hops * level.ranks == all * (level.ranks - level.domain));
    }
  }
}

TEST_CASE("expert domains: neighbours that share experts\\, and shares of experts") {
  for (const auto& [ranks, sharing] : {std::pair{8, 2}, {8, 8}, {6, 3}, {4, 1}, {1, 1}}) {
    const ExpertDomains domains = ExpertDomains::of_neighbours(ranks, sharing);
    CHECK(domains.sharing() == sharing);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      CHECK(domains.position(rank) == rank % sharing);
      CHECK(domains.member(rank, 0) == rank / sharing * sharing);
    }
  }
  // Two hosts of four ranks. On a host, two ranks hold the same experts, so groups are no neighbours.
  const ExpertDomains domains({{2, 1}, {4, 2}});
  const ShardMap map(16, 8);
  const std::vector<BlockShare> shares = shares_of_expert(map, domains, 1);
  std::vector<std::pair<int32_t, int32_t>> found;
  for (const BlockShare& share : shares) found.emplace_back(share.rank, share.shards.begin);
  CHECK(found == std::vector<std::pair<int32_t, int32_t>>{{1, 0}, {3, 4}, {1, 8}, {3, 12}});
  const Owners owners = choose_owners(16, 8, {{100, shares}});
  CHECK(owners.users(0) == std::vector<int32_t>{1, 3});
  CHECK_THROWS_AS(shares_of_expert(ShardMap(16, 4), domains, 0), std::logic_error);
  CHECK_THROWS_AS(shares_of_expert(map, domains, 4), std::logic_error);
  CHECK_THROWS_AS(ExpertDomains({{4, 3}}), std::logic_error);
}

TEST_CASE("expert domains: every choice of sizes\\, small domains first") {
  std::vector<std::vector<int32_t>> found;
  for (const ExpertDomains& domains : ExpertDomains::of_levels({2, 4})) {
    found.push_back({domains.levels()[0].domain, domains.levels()[1].domain});
    CHECK(domains.ranks() == 8);
  }
  const std::vector<std::vector<int32_t>> expected{{1, 1}, {1, 2}, {2, 1}, {1, 4}, {2, 2}, {2, 4}};
  CHECK(found == expected);
  CHECK(ExpertDomains::of_levels({1}).size() == 1);
}

}  // namespace hearth::test
