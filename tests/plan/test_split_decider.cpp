// The rule that divides experts while a step runs, and its book of what devices have.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "plan/decisions/makespan_rule.h"
#include "plan/decisions/split_decider.h"
#include "plan/split_cases.h"

namespace hearth::test {
namespace {

constexpr int64_t kDecidedExperts = 4;

/// Layers 0 and 2 at device 3. An expert takes the host `host` seconds a token and the device none; its
/// weights need a second of the link.
struct DeciderCase {
  std::shared_ptr<CostTable> none;
  CostEntry host, device = line(0, 1e-9);
  DecidedDevice at;

  explicit DeciderCase(double host_seconds, int64_t slots, int passes = 1)
      : host(line(0, host_seconds)) {
    at.place = 3;
    at.layers = {0, 2};
    for (int i = 0; i < passes; ++i) at.passes.push_back({nullptr, nullptr, &host, &device, i > 0});
    at.link.in.bytes_per_s = 10;
    at.weight_bytes = 10;
    at.slots = slots;
  }
  SplitDecider rule() const { return {{at}, kDecidedExperts, &split_by_makespan}; }
};

std::vector<Place> divided(SplitDecider& rule, int32_t layer, const std::vector<double>& tokens) {
  std::vector<Place> places(kDecidedExperts, 7);
  rule.divide(layer, tokens, places);
  return places;
}

int64_t count_of(const std::vector<Place>& places, Place place) {
  return std::ranges::count(places, place);
}

TEST_CASE("split decider: a slow host gives its experts to the device, a fast one keeps them") {
  const DeciderCase slow_host(1, 0), fast_host(1e-6, 0);
  SplitDecider slow = slow_host.rule(), fast = fast_host.rule();
  const std::vector<double> tokens = {100, 50, 20, 10};
  CHECK(count_of(divided(slow, 0, tokens), 3) == kDecidedExperts);
  CHECK(count_of(divided(fast, 0, tokens), kHostPlace) == kDecidedExperts);
  CHECK(slow.last(0).device.size() == kDecidedExperts);
  CHECK(slow.last(2).reasons.empty());
}

TEST_CASE("split decider: tokens of all micro-batches count") {
  const DeciderCase c(0.1, 0);
  SplitDecider rule = c.rule();
  // Expert 3 is the hottest of the two micro-batches together.
  const std::vector<Place> places = divided(rule, 0, {9, 0, 0, 8, 1, 0, 0, 9});
  CHECK(places[3] == 3);
  CHECK(places[0] == kHostPlace);
}

TEST_CASE("split decider: what is at the device stays there while its slots last") {
  const std::vector<double> first = {40, 0, 0, 0}, then = {2, 1, 0, 0};
  // Alone, two tokens are cheaper on the host; with the weights there already, on the device.
  const DeciderCase without(0.1, 0), with(0.1, 2);
  SplitDecider none = without.rule(), some = with.rule();
  for (SplitDecider* rule : {&none, &some}) {
    CHECK(divided(*rule, 0, first)[0] == 3);
  }
  CHECK(divided(none, 0, then)[0] == kHostPlace);
  CHECK(divided(some, 0, then)[0] == 3);
}

TEST_CASE("split decider: trained weights are old after a step, frozen ones are not") {
  for (const bool is_trained : {false, true}) {
    DeciderCase c(0.1, 2);
    c.at.is_trained = is_trained;
    SplitDecider rule = c.rule();
    divided(rule, 0, {40, 0, 0, 0});
    rule.begin_step(2);
    CHECK((divided(rule, 0, {2, 1, 0, 0})[0] == 3) == !is_trained);
  }
}

TEST_CASE("split decider: an expert that trains stays in a step where it was put first") {
  DeciderCase c(0.1, 4);
  c.at.is_trained = true;
  c.at.groups = 3;
  SplitDecider rule = c.rule();
  rule.begin_step(1);
  const std::vector<Place> first = divided(rule, 0, {100, 1, 0, 90});
  CHECK(first[0] == 3);
  CHECK(first[1] == kHostPlace);
  // By its tokens now, expert 1 would be at the device, and expert 0 at the host.
  const std::vector<Place> second = divided(rule, 0, {1, 100, 100, 1});
  CHECK(second[0] == 3);
  CHECK(second[1] == kHostPlace);
  CHECK(second[2] == 3);  // it had no tokens before
  CHECK(rule.last(0).reasons[0] == SplitReason::resident);
  // The device computes first what it has.
  CHECK(rule.order(0).back() == 2);
  rule.begin_step(2);
  CHECK(divided(rule, 0, {1, 100, 100, 1})[1] == 3);
  c.at.is_trained = false;
  SplitDecider frozen = c.rule();
  frozen.begin_step(1);
  divided(frozen, 0, {100, 1, 0, 90});
  CHECK(divided(frozen, 0, {1, 100, 100, 1})[1] == 3);
}

TEST_CASE("split decider: a load counts once for the groups that find it there") {
  // A load takes a second. The host takes 0.6 s for the tokens of a group, so 2.4 s for those of four.
  DeciderCase once(0.01, 8), often(0.01, 8);
  often.at.groups = 4;
  SplitDecider one = once.rule(), four = often.rule();
  const std::vector<double> tokens = {60, 0, 0, 0};
  CHECK(divided(one, 0, tokens)[0] == kHostPlace);
  CHECK(divided(four, 0, tokens)[0] == 3);
  often.at.slots = 1;  // a layer of the stage takes the slots of the other
  SplitDecider few = often.rule();
  CHECK(divided(few, 0, tokens)[0] == kHostPlace);
}

TEST_CASE("split decider: without times the device computes all") {
  DeciderCase c(1e-6, 0);
  c.at.passes.clear();
  SplitDecider rule = c.rule();
  CHECK(count_of(divided(rule, 2, {1, 2, 3, 4}), 3) == kDecidedExperts);
}

TEST_CASE("split decider: with the past of another it decides as that one would") {
  DeciderCase c(0.1, 2);
  const std::vector<double> first = {40, 0, 0, 0}, then = {2, 1, 0, 0};
  SplitDecider one = c.rule(), other = c.rule(), fewer = c.rule();
  divided(one, 0, first);
  divided(one, 2, first);
  const std::vector<DecidedPast> past = one.past();
  REQUIRE(past.size() == 1);
  CHECK(past[0].device == 3);
  CHECK(past[0].loaded == std::vector<std::pair<int32_t, int32_t>>{{2, 0}, {0, 0}});
  CHECK(past[0].given.size() == 2);
  other.restore(past);
  CHECK(other.last(2).device == std::vector<int32_t>{0});
  CHECK(divided(other, 0, then) == divided(one, 0, then));
  CHECK(divided(other, 0, then) != divided(fewer, 0, then));
  // Decisions since then are taken back.
  divided(one, 2, {0, 40, 0, 0});
  one.restore(past);
  CHECK(one.past()[0].loaded == past[0].loaded);
  CHECK(one.past()[0].given == past[0].given);
  // Of fewer slots the one used last; of other devices and layers nothing.
  c.at.slots = 1;
  c.at.layers = {0};
  SplitDecider small = c.rule();
  small.restore(past);
  CHECK(small.past()[0].loaded == std::vector<std::pair<int32_t, int32_t>>{{0, 0}});
  c.at.place = 4;
  SplitDecider elsewhere = c.rule();
  elsewhere.restore(past);
  CHECK(elsewhere.past()[0].loaded.empty());
}

TEST_CASE("split decider: a record decides, group by group, whether there are times or not") {
  DeciderCase c(1, 0);
  c.at.passes.clear();
  auto record = std::make_shared<RecordedSplits>("j");
  const std::vector<SplitReason> why(kDecidedExperts, SplitReason::loaded);
  record->add(2, 0, {1, {4, 3, 2, 1}, {1, 0, 0, 1}, why});
  record->add(2, 0, {2, {1, 1, 1, 1}, {0, 1, 0, 0}, why});
  SplitDecider rule = c.rule();
  rule.repeat(record);
  for (int again = 0; again < 2; ++again) {  // a step that was abandoned comes again
    rule.begin_step(2);
    CHECK(divided(rule, 0, {4, 3, 2, 1}) == std::vector<Place>{3, 0, 0, 3});
    CHECK(divided(rule, 0, {1, 0, 1, 0, 0, 1, 0, 1}) == std::vector<Place>{0, 3, 0, 0});
    REQUIRE(rule.decisions().size() == 2);
    CHECK(rule.decisions()[1].split.reasons == why);
  }
  rule.begin_step(3);
  CHECK_THROWS_AS(divided(rule, 0, {4, 3, 2, 1}), Error);
}

/// The experts foretold of layer 0, or of the first of a list.
std::vector<int32_t> experts_of(const std::vector<ForetoldExperts>& all, int32_t layer) {
  for (const ForetoldExperts& of : all) {
    if (of.layer == layer) return of.experts;
  }
  return {-1};
}

SplitDecider with_phases(const DeciderCase& c, const LoadPhases& phases) {
  return {{c.at}, kDecidedExperts, &split_by_makespan, {.phases = phases}};
}

TEST_CASE("split decider: the last whole step foretells the next, expert by expert") {
  const DeciderCase c(0.1, 0);
  SplitDecider rule = c.rule();
  rule.begin_step(1);
  CHECK(rule.foretold().empty());
  divided(rule, 0, {0, 0, 90, 1});
  CHECK(rule.foretold_behind(0).empty());  // nothing is known of layer 2
  divided(rule, 2, {1, 90, 0, 0});
  rule.end_step();
  rule.begin_step(2);
  CHECK(experts_of(rule.foretold(), 0) == std::vector<int32_t>{2});
  CHECK(experts_of(rule.foretold(), 2) == std::vector<int32_t>{1});
  CHECK(experts_of(rule.foretold_behind(0), 2) == std::vector<int32_t>{1});
  CHECK(rule.foretold_behind(2).empty());
  CHECK_FALSE(rule.score().token_hit());
  divided(rule, 0, {50, 0, 50, 0});
  CHECK(rule.score().token_hit() == 0.5);
  CHECK(rule.score().byte_hit() == 0.5);
}

TEST_CASE("split decider: groups that have passed foretell the next group of a step") {
  DeciderCase c(0.1, 0);
  c.at.groups = 2;
  SplitDecider rule = c.rule();
  rule.begin_step(1);
  divided(rule, 0, {0, 0, 90, 0});
  divided(rule, 2, {0, 90, 0, 0});
  CHECK(experts_of(rule.foretold_behind(0), 2) == std::vector<int32_t>{1});
  divided(rule, 0, {0, 0, 90, 0});
  divided(rule, 2, {0, 0, 0, 500});
  CHECK(experts_of(rule.foretold_behind(0), 2) == std::vector<int32_t>{3, 1});
}

TEST_CASE("split decider: loads ahead end at the next stage of the device") {
  DeciderCase c(0.1, 0);
  c.at.stages = {0, 1};
  SplitDecider rule = c.rule();
  rule.begin_step(1);
  divided(rule, 0, {0, 0, 90, 0});
  divided(rule, 2, {0, 90, 0, 0});
  rule.end_step();
  rule.begin_step(2);
  CHECK(experts_of(rule.foretold(), 2) == std::vector<int32_t>{1});
  CHECK(rule.foretold_behind(0).empty());
}

TEST_CASE("split decider: what is loaded ahead is prefetched, if a phase loads ahead") {
  DeciderCase c(0.1, 0);
  c.at.passes.front().dense_s = 1.5;  // enough for one expert
  c.at.full_tokens = 40;
  const auto reason_of_2 = [&](const LoadPhases& phases) {
    SplitDecider rule = with_phases(c, phases);
    rule.begin_step(1);
    divided(rule, 0, {0, 0, 40, 0});
    rule.end_step();
    rule.begin_step(2);
    CHECK(divided(rule, 0, {0, 1, 39, 0})[2] == 3);
    return rule.last(0).reasons[2];
  };
  CHECK(reason_of_2({}) == SplitReason::prefetched);
  CHECK(reason_of_2({true, false, true}) == SplitReason::prefetched);
  CHECK(reason_of_2({false, true, true}) == SplitReason::prefetched);
  CHECK(reason_of_2({false, false, true}) == SplitReason::loaded);
}

TEST_CASE("split decider: without inter-expert, foretold tokens divide the experts") {
  const DeciderCase c(0.1, 0);
  SplitDecider rule = with_phases(c, {true, true, false});
  rule.begin_step(1);
  // Nothing is known yet: all experts would have 100 tokens, too many for the host.
  CHECK(divided(rule, 0, {399, 0, 0, 1}) == std::vector<Place>{3, 0, 0, 3});
  rule.end_step();
  rule.begin_step(2);
  CHECK(divided(rule, 0, {1, 98, 1, 0}) == std::vector<Place>{3, 0, 0, 0});
  const ExpertSplit split = rule.last(0);
  CHECK(split.device == std::vector<int32_t>{0});
  CHECK(split.host == std::vector<int32_t>{1, 2});
  CHECK(split.reasons[1] == SplitReason::host_balance);
  CHECK(split.reasons[3] == SplitReason::none);
}

TEST_CASE("split decider: an abandoned step foretells nothing, its history stays") {
  const DeciderCase c(0.1, 0);
  SplitDecider rule = c.rule(), other = c.rule();
  rule.begin_step(1);
  divided(rule, 0, {0, 500, 0, 0});
  rule.begin_step(1);  // again: nothing of it is left
  CHECK(rule.foretold().empty());
  divided(rule, 0, {0, 0, 90, 0});
  rule.end_step();
  const std::vector<DecidedPast> past = rule.past();
  CHECK(past[0].tokens == std::vector<std::pair<int32_t, std::vector<double>>>{{0, {0, 0, 90, 0}}});
  rule.begin_step(2);
  divided(rule, 0, {0, 500, 0, 0});
  rule.restore(past);
  rule.begin_step(2);
  other.restore(past);
  other.begin_step(2);
  for (SplitDecider* of : {&rule, &other}) {
    CHECK(experts_of(of->foretold(), 0) == std::vector<int32_t>{2});
    CHECK(experts_of(of->foretold(), 2) == std::vector<int32_t>{-1});
  }
}

TEST_CASE("resident book: the one used longest ago gives its place up") {
  ResidentBook book(2, 8);
  book.use(0, 1);
  book.use(1, 1);
  book.use(0, 1);  // again
  book.use(0, 2);
  CHECK(book.has(0, 1));
  CHECK(book.has(0, 2));
  CHECK_FALSE(book.has(1, 1));
  CHECK(book.count() == 2);
  book.clear();
  CHECK(book.count() == 0);
  ResidentBook none(0, 8);
  none.use(0, 1);
  CHECK_FALSE(none.has(0, 1));
}

}  // namespace
}  // namespace hearth::test
