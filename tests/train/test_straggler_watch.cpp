// Which rank counts as slow, and that noise is none.
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "base/random.h"
#include "train/straggler_watch.h"

namespace hearth::test {
namespace {

using Catch::Approx;

/// Feeds steps whose work is given by rank; all ranks wait for the slowest.
class Steps {
 public:
  std::optional<Straggler> add(const std::vector<double>& work) {
    double longest = 0;
    for (const double seconds : work) longest = std::max(longest, seconds);
    std::vector<RankStep> step(work.size());
    for (size_t r = 0; r < work.size(); ++r) {
      step[r] = {
          static_cast<int32_t>(r), "h" + std::to_string(r), longest, longest - work[r], 1, {}};
    }
    return watch_.add(step);
  }
  /// The stragglers of so many equal steps.
  std::vector<Straggler> add(const std::vector<double>& work, int count) {
    std::vector<Straggler> found;
    for (int i = 0; i < count; ++i) {
      if (const auto one = add(work)) found.push_back(*one);
    }
    return found;
  }

 private:
  StragglerWatch watch_;
};

TEST_CASE("stragglers: a rank that is slow for many steps is named once") {
  Steps steps;
  CHECK(steps.add({.2, .2, .3, .2}, 31).empty());
  const auto found = steps.add({.2, .2, .3, .2}, 100);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].host == "h2");
  CHECK(found[0].factor == Approx(1.5));
  CHECK(found[0].steps == 32);
  CHECK(found[0].text() ==
        "rank 2 (host h2) is slow: in the last 32 steps it took 1.50 times as long as the others");
  CHECK(steps.add({.2, .2, .2, .2}, 20).empty());  // it has kept up: named again
  CHECK(steps.add({.2, .2, .3, .2}, 60).size() == 1);
}

TEST_CASE("stragglers: of two ranks the slower\\, and of short steps more") {
  Steps two;
  const auto found = two.add({.14, .1}, 60);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 0);
  Steps quick;  // 5 s at least, in pieces of 1.25 s
  CHECK(quick.add({.001, .002}, 2400).empty());
  CHECK(quick.add({.001, .002}, 200).size() == 1);
}

TEST_CASE("stragglers: no alarm where ranks are alike\\, noisy or disturbed for a while") {
  CHECK(Steps().add({.2, .25, .2}, 200).empty());  // a quarter
  Steps steps;
  const Random random(3, RandomSite::sample, 1);
  for (uint64_t i = 0; i < 3000; ++i) {
    std::vector<double> work;
    for (uint64_t r = 0; r < 4; ++r) {
      const double noise = random.uniform(4 * i + r);
      work.push_back(.1 + .1 * noise + (noise > .97 ? .5 : 0));
    }
    CHECK_FALSE(steps.add(work));
  }
  for (int i = 0; i < 20; ++i) {  // bursts shorter than four pieces
    CHECK(steps.add({.2, .6, .2, .2}, 15).empty());
    CHECK(steps.add({.2, .2, .2, .2}, 17).empty());
  }
  CHECK(Steps().add({.2}, 100).empty());  // one rank
}

}  // namespace
}  // namespace hearth::test
