// Cost tables: interpolation, the entry that fits, digests, and what a table refuses.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "plan/cost_table.h"
#include "support/raises.h"

namespace hearth {
namespace {

using Catch::Approx;
using test::raised_by;

CostEntry experts(std::vector<int64_t> units, std::vector<double> seconds) {
  CostEntry e;
  e.kind = TaskKind::experts;
  e.units = std::move(units);
  e.seconds = std::move(seconds);
  return e;
}

CostEntry of_cores(std::optional<int64_t> cores, double seconds) {
  CostEntry e = experts({1}, {seconds});
  e.cores = cores;
  return e;
}

CostEntry of_shape(int64_t hidden, int64_t width, double seconds) {
  CostEntry e = experts({1}, {seconds});
  e.shape = CostShape{hidden, width};
  return e;
}

const CostLink kLink{"host->virtual:0", 1e9, 1e-5, 5e8};
const CostShape kShape{64, 32};

double found(const CostTable& table, int64_t cores, const CostShape& shape = kShape) {
  return table.seconds(TaskKind::experts, Phase::forward, Compute::f32, cores, shape, 1).value();
}

TEST_CASE("cost table: linear between points, constant below, in proportion above") {
  const CostEntry e = experts({10, 20, 40}, {1, 3, 3.5});
  CHECK(e.at(10) == 1);
  CHECK(e.at(15) == Approx(2));
  CHECK(e.at(20) == 3);
  CHECK(e.at(30) == Approx(3.25));
  CHECK(e.at(40) == 3.5);
  CHECK(e.at(1) == 1);
  CHECK(e.at(0.5) == 1);
  CHECK(e.at(80) == Approx(7));
  CHECK(e.at(41) == Approx(3.5 * 41 / 40));
  CHECK(experts({8}, {2}).at(4) == 2);
  CHECK(experts({8}, {2}).at(16) == 4);
  // Points that doubles cannot tell apart.
  const int64_t far = int64_t{1} << 62;
  CHECK(experts({far, far + 1}, {1, 2}).at(static_cast<double>(far)) == 1);
}

TEST_CASE("cost table: attention takes the longer time of its tokens and its pairs") {
  CostEntry e = experts({10, 20}, {1, 2});
  e.kind = TaskKind::attention;
  CHECK(e.at(15, 1000) == Approx(1.5));  // an entry without pairs knows tokens alone
  e.pairs = {55, 210};
  CHECK(e.at(10, 55) == 1);
  CHECK(e.at(20, 210) == 2);
  CHECK(e.at(15, 60) == Approx(1.5));  // short documents
  CHECK(e.at(10, 420) == Approx(4));   // long documents, in proportion
  CHECK(e.at(15, 0) == Approx(1.5));   // pairs unknown
}

TEST_CASE("cost table: kind, phase and dtype must agree; a recompute falls back to forward") {
  CostEntry backward = experts({1}, {2});
  backward.phase = Phase::backward;
  CostEntry rounded = experts({1}, {4});
  rounded.dtype = Compute::bf16;
  rounded.phase = Phase::recompute;
  const CostTable table({experts({1}, {1}), backward, rounded}, {});
  const auto seconds = [&](TaskKind kind, Phase phase, Compute dtype) {
    return table.seconds(kind, phase, dtype, 2, kShape, 1);
  };
  CHECK(seconds(TaskKind::experts, Phase::forward, Compute::f32) == 1);
  CHECK(seconds(TaskKind::experts, Phase::recompute, Compute::f32) == 1);
  CHECK(seconds(TaskKind::experts, Phase::backward, Compute::f32) == 2);
  CHECK(seconds(TaskKind::experts, Phase::recompute, Compute::bf16) == 4);
  CHECK(seconds(TaskKind::experts, Phase::forward, Compute::bf16) == std::nullopt);
  CHECK(seconds(TaskKind::experts, Phase::backward, Compute::bf16) == std::nullopt);
  CHECK(seconds(TaskKind::mlp, Phase::forward, Compute::f32) == std::nullopt);
  CHECK(seconds(TaskKind::clip, Phase::forward, Compute::f32) == std::nullopt);
}

TEST_CASE("cost table: the stated cores and shape, else the open entry, else the nearest") {
  const CostTable cores({of_cores(2, 1), of_cores(8, 3), of_cores(32, 5)}, {});
  CHECK(found(cores, 2) == 1);
  CHECK(found(cores, 8) == 3);
  CHECK(found(cores, 1) == 1);
  CHECK(found(cores, 5) == 3);  // 8 / 5 is less than 5 / 2
  CHECK(found(cores, 15) == 3);
  CHECK(found(cores, 17) == 5);
  CHECK(found(cores, 1000) == 5);
  CHECK(found(cores, 4) == 1);  // of equally near entries the one of fewer cores
  const CostTable open({of_cores(std::nullopt, 7), of_cores(8, 3)}, {});
  CHECK(found(open, 8) == 3);
  CHECK(found(open, 9) == 7);
  const CostTable shapes({of_shape(64, 32, 1), of_shape(64, 128, 2), of_shape(512, 128, 3)}, {});
  CHECK(found(shapes, 1, {64, 32}) == 1);
  CHECK(found(shapes, 1, {64, 100}) == 2);
  CHECK(found(shapes, 1, {400, 128}) == 3);
  // Cores and shape count together.
  CostEntry both = of_shape(64, 32, 9);
  both.cores = 4;
  const CostTable mixed({of_shape(64, 32, 1), both}, {});
  CHECK(found(mixed, 4, {64, 32}) == 9);
  CHECK(found(mixed, 2, {64, 32}) == 1);
}

TEST_CASE("cost table: the order of entries changes neither times nor digest") {
  const std::vector<CostEntry> entries = {of_cores(2, 1), of_cores(8, 3), of_cores({}, 4)};
  const CostTable table(entries, {kLink, {"virtual:0->host", 1e9, 0, 1e9}});
  const CostTable turned({entries.rbegin(), entries.rend()},
                         {{"virtual:0->host", 1e9, 0, 1e9}, kLink});
  CHECK(turned.digest() == table.digest());
  CHECK(found(turned, 4) == found(table, 4));
  REQUIRE(table.link_to("virtual:0") != nullptr);
  CHECK(table.link_to("virtual:0")->together == 5e8);
  CHECK(table.link_to("virtual:1") == table.link_to("virtual:0"));  // the only one
  CHECK(table.link_from("virtual:0")->together == 1e9);
  CHECK(table.link_from("cuda:3") == table.link_from("virtual:0"));
  CostLink other = kLink;
  other.link = "host->virtual:2";
  const CostTable two(entries, {kLink, other, {"virtual:0->virtual:2", 1e9, 0, 1e9}});
  CHECK(two.link_to("virtual:2")->link == other.link);
  CHECK(two.link_to("virtual:1") == nullptr);
  CHECK(two.link_from("virtual:0") == nullptr);
}

TEST_CASE("cost table: every value that gives a time is part of the digest") {
  CostEntry e = experts({1, 2}, {0, 1});
  e.kind = TaskKind::attention;
  e.cores = 4;
  e.shape = kShape;
  e.pairs = {1, 3};
  const Digest digest = CostTable({e}, {kLink}).digest();
  CHECK(CostTable({e}, {kLink}).digest() == digest);
  CHECK_FALSE(CostTable({e}, {}).digest() == digest);
  const std::function<void(CostEntry&, CostLink&)> changes[] = {
      [](CostEntry& c, CostLink&) { c.kind = TaskKind::mlp, c.pairs.clear(); },
      [](CostEntry& c, CostLink&) { c.phase = Phase::backward; },
      [](CostEntry& c, CostLink&) { c.dtype = Compute::bf16; },
      [](CostEntry& c, CostLink&) { c.cores = 5; },
      [](CostEntry& c, CostLink&) { c.cores.reset(); },
      [](CostEntry& c, CostLink&) { c.shape->hidden = 65; },
      [](CostEntry& c, CostLink&) { c.shape->width = 33; },
      [](CostEntry& c, CostLink&) { c.shape.reset(); },
      [](CostEntry& c, CostLink&) { c.units[1] = 3; },
      [](CostEntry& c, CostLink&) { c.pairs[1] = 4; },
      [](CostEntry& c, CostLink&) { c.pairs.clear(); },
      [](CostEntry& c, CostLink&) { c.seconds[1] = 1.5; },
      [](CostEntry&, CostLink& l) { l.link = "host->virtual:1"; },
      [](CostEntry&, CostLink& l) { l.bytes_per_s = 2e9; },
      [](CostEntry&, CostLink& l) { l.latency_s = 0; },
      [](CostEntry&, CostLink& l) { l.together = 6e8; }};
  for (size_t i = 0; i < std::size(changes); ++i) {
    INFO("change " << i);
    CostEntry changed = e;
    CostLink link = kLink;
    changes[i](changed, link);
    CHECK_FALSE(CostTable({changed}, {link}).digest() == digest);
  }
  // Zero has one digest, with either sign.
  CostEntry negative = e;
  negative.seconds[0] = -0.0;
  CHECK(CostTable({negative}, {kLink}).digest() == digest);
}

TEST_CASE("cost table: a value that breaks a rule is refused by name") {
  const auto refused = [](CostEntry e, const std::string& what) {
    const auto raised = raised_by([&] { CostTable({experts({7}, {1}), e}, {}, "file"); });
    INFO(raised.message);
    return raised.code == ExitCode::input && raised.says("file: entries[1]") && raised.says(what);
  };
  CHECK(refused(experts({}, {}), "units: expected at least one point"));
  CHECK(refused(experts({0}, {1}), "units: expected whole numbers, at least 1"));
  CHECK(refused(experts({-3, 2}, {1, 1}), "units: expected whole numbers, at least 1"));
  CHECK(refused(experts({2, 2}, {1, 1}), "units: expected numbers that rise"));
  CHECK(refused(experts({2, 1}, {1, 1}), "units: expected numbers that rise"));
  CHECK(refused(experts({1, 2}, {1}), "seconds: expected as many as units"));
  CHECK(refused(experts({1}, {1, 2}), "seconds: expected as many as units"));
  CHECK(refused(experts({1, 2}, {2, 1}), "seconds: expected numbers that never fall"));
  CHECK(refused(experts({1}, {-1e-9}), "seconds: expected finite numbers, at least 0"));
  CHECK(refused(experts({1}, {INFINITY}), "seconds: expected finite numbers, at least 0"));
  CHECK(refused(experts({1}, {NAN}), "seconds: expected finite numbers, at least 0"));
  CHECK(refused(of_cores(0, 1), "cores: expected a whole number, at least 1"));
  CHECK(refused(of_shape(0, 1, 1), "shape: expected hidden and width"));
  CHECK(refused(of_shape(1, 0, 1), "shape: expected hidden and width"));
  CostEntry e = experts({1, 2}, {1, 1});
  e.dtype = Compute::f64;
  CHECK(refused(e, "dtype: expected f32 or bf16"));
  for (const TaskKind kind : {TaskKind::clip, TaskKind::copy}) {
    e = experts({1}, {1});
    e.kind = kind;
    CHECK(refused(e, "kind: a table has no " + std::string(name_of(kind))));
  }
  e = experts({1, 2}, {1, 1});
  e.pairs = {1, 2};
  CHECK(refused(e, "pairs: only attention has pairs"));
  e.kind = TaskKind::attention;
  e.pairs = {1};
  CHECK(refused(e, "pairs: expected as many as units"));
  e.pairs = {2, 2};
  CHECK(refused(e, "pairs: expected numbers that rise"));
  e.pairs = {0, 2};
  CHECK(refused(e, "pairs: expected whole numbers, at least 1"));
  // Times may stay the same.
  e.pairs = {1, 3};
  CHECK_NOTHROW(CostTable({e, experts({1, 2}, {0, 0})}, {}));
}

TEST_CASE("cost table: an entry twice is refused") {
  const auto twice = [](const CostEntry& a, const CostEntry& b) {
    const auto raised = raised_by([&] { CostTable({a, b}, {}, "file"); });
    if (raised.code == ExitCode::done) return false;
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says("file: entries: experts forward twice"));
    return true;
  };
  CHECK(twice(experts({1}, {1}), experts({2}, {2})));
  CHECK(twice(of_cores(2, 1), of_cores(2, 3)));
  CHECK(twice(of_shape(4, 8, 1), of_shape(4, 8, 3)));
  CHECK_FALSE(twice(of_cores(2, 1), of_cores(3, 1)));
  CHECK_FALSE(twice(of_cores(2, 1), of_cores({}, 1)));
  CHECK_FALSE(twice(of_shape(4, 8, 1), of_shape(4, 9, 1)));
}

TEST_CASE("cost table: a link that breaks a rule is refused by name") {
  const auto refused = [](CostLink link, const std::string& what) {
    const auto raised = raised_by([&] { CostTable({}, {std::move(link)}, "file"); });
    INFO(raised.message);
    return raised.code == ExitCode::input && raised.says("file: links[0]: " + what);
  };
  for (const char* name : {"", "host", "->", "host->", "->host"}) {
    CHECK(refused({name, 1, 0, 1}, "link: expected FROM->TO"));
  }
  for (const double rate : {0.0, -1.0, double{INFINITY}, double{NAN}}) {
    CHECK(refused({"a->b", rate, 0, 1}, "bytes_per_s"));
    CHECK(refused({"a->b", 1, 0, rate}, "together"));
  }
  for (const double latency : {-1.0, double{INFINITY}, double{NAN}}) {
    CHECK(refused({"a->b", 1, latency, 1}, "latency_s"));
  }
  const auto raised = raised_by([] { CostTable({}, {kLink, kLink}, "file"); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("file: links: 'host->virtual:0' twice"));
}

}  // namespace
}  // namespace hearth
