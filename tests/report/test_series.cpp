// Steps in buckets, and which lines of a resumed run count.
#include "report/series.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "report/repeated_steps.h"

using namespace hearth;

TEST_CASE("every step has a bucket, and a bucket the steps that it says") {
  struct Case {
    int64_t first, last, most;
  };
  const std::vector<Case> cases{{1, 1, 500},
                                {0, 24, 500},
                                {1, 500, 500},
                                {7, 507, 500},
                                {1, 1999, 500},
                                {1, 99'999'999, 500},
                                {90'000'000, 99'999'999, 120}};
  for (const auto& [first, last, most] : cases) {
    const StepAxis axis(first, last, most);
    CHECK(axis.buckets == std::min(last - first + 1, most));
    CHECK(axis.begin_of(0) == first);
    CHECK(axis.begin_of(axis.buckets) == last + 1);
    int64_t wrong = 0;
    for (int64_t b = 0; b < axis.buckets; ++b) {
      wrong += axis.bucket_of(axis.begin_of(b)) != b;
      wrong += axis.bucket_of(axis.begin_of(b + 1) - 1) != b;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a bucket keeps the spike of one step among thousands") {
  Series series(StepAxis(1, 1'000'000, 500));
  for (int64_t step = 1; step <= 1'000'000; ++step) series.add(step, step == 777'777 ? 9.5 : 1);
  const Bucket& bucket = series.buckets[static_cast<size_t>(series.axis.bucket_of(777'777))];
  CHECK(bucket.max == 9.5);
  CHECK(bucket.min == 1);
  CHECK(bucket.count == 2000);
  CHECK(bucket.mean() == (1999 + 9.5) / 2000);
  CHECK(series.all.max == 9.5);
  CHECK(series.all.count == 1'000'000);
  series.add(5, std::numeric_limits<double>::quiet_NaN());
  series.add(5, std::numeric_limits<double>::infinity());
  CHECK(series.all.count == 1'000'000);
}

TEST_CASE("of the lines of one step the last counts, for any order of steps") {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::vector<int64_t> lines;
    for (int run = 0; run < 1 + round % 7; ++run) {
      const int64_t first = 1 + static_cast<int64_t>(random() % 20);
      const int64_t count = 1 + static_cast<int64_t>(random() % 12);
      for (int64_t step = first; step < first + count; ++step) {
        if (random() % 16) lines.push_back(step);
      }
    }
    std::map<int64_t, size_t> last;
    RepeatedSteps steps;
    for (size_t i = 0; i < lines.size(); ++i) {
      last[lines[i]] = i;
      steps.add(lines[i]);
    }
    steps.settle();
    size_t wrong = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      wrong += steps.counts(lines[i]) != (last.at(lines[i]) == i);
    }
    REQUIRE(wrong == 0);
  }
}
