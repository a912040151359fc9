// The record of the best states.
#include "train/best_states.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/raises.h"

using namespace hearth;
using test::raised_by;

namespace {

using Steps = std::vector<int64_t>;

/// An evaluation whose state is saved if it is wanted.
void evaluated(BestStates& best, int64_t step, double loss) {
  best.add(step, loss);
  best.saved(step);
}

}  // namespace

TEST_CASE("best states: the lowest losses, of equal ones the earliest") {
  BestStates best(2);
  evaluated(best, 1, 5);
  evaluated(best, 2, 4);
  evaluated(best, 3, 4);
  CHECK(best.steps() == Steps{2, 3});
  evaluated(best, 4, 6);
  CHECK(best.steps() == Steps{2, 3});
  evaluated(best, 5, 4);  // no better than the second
  CHECK(best.steps() == Steps{2, 3});
  evaluated(best, 6, 3);
  CHECK(best.steps() == Steps{6, 2});
  REQUIRE(best.best());
  CHECK(best.best()->step == 6);
  CHECK(best.best()->loss == 3);
}

TEST_CASE("best states: only a state that is among the best is wanted, until it is saved") {
  BestStates best(1);
  CHECK_FALSE(best.wants(1));
  best.add(1, 5);
  CHECK(best.wants(1));
  CHECK_FALSE(best.best());  // not on disk yet
  best.saved(1);
  CHECK_FALSE(best.wants(1));
  best.add(2, 6);
  CHECK_FALSE(best.wants(2));
  BestStates none(0);
  none.add(1, 5);
  CHECK_FALSE(none.wants(1));
  CHECK(none.steps().empty());
}

TEST_CASE("best states: a failed save loses no other best state") {
  BestStates best(1);
  evaluated(best, 1, 5);
  best.add(2, 4);
  CHECK(best.steps() == Steps{2});  // once it is saved
  best.not_saved(2);
  CHECK(best.steps() == Steps{1});
  CHECK(best.best()->step == 1);
  // The loss was a new best all the same.
  CHECK(best.lowest()->step == 2);
  CHECK(best.without_best() == 0);
}

TEST_CASE("best states: an evaluation while the last best state is being saved") {
  BestStates best(1);
  best.add(1, 5);
  best.add(2, 6);  // worse than one that is being saved
  CHECK_FALSE(best.wants(2));
  best.add(3, 4);
  CHECK(best.wants(1));
  CHECK(best.wants(3));
  best.saved(1);
  CHECK(best.best()->step == 1);
  best.saved(3);
  CHECK(best.best()->step == 3);
  CHECK(best.steps() == Steps{3});
}

TEST_CASE("best states: evaluations in a row without a new best") {
  BestStates best;  // keeps none
  const auto after = [&](int64_t step, double loss) {
    best.add(step, loss);
    return best.without_best();
  };
  CHECK(after(1, 5) == 0);
  CHECK(after(2, 5) == 1);
  CHECK(after(3, 6) == 2);
  CHECK(after(4, 4) == 0);
  CHECK(after(5, std::numeric_limits<double>::quiet_NaN()) == 1);
  CHECK(after(6, std::numeric_limits<double>::infinity()) == 2);
  CHECK(best.lowest()->step == 4);
}

TEST_CASE("best states: the record goes through a manifest") {
  BestStates best(2);
  evaluated(best, 1, 5);
  evaluated(best, 2, 4.1);
  best.add(3, 0.1 + 0.2);  // being saved with this record
  const Json record = best.to_json();
  BestStates again(2);
  again.restore(&record, "m");
  CHECK(again.steps() == Steps{3, 2});
  CHECK(again.best()->loss == 0.1 + 0.2);
  CHECK(again.last_evaluated() == 3);
  CHECK(again.to_json().dump() == record.dump());
  BestStates fewer(1);
  fewer.restore(&record, "m");
  CHECK(fewer.steps() == Steps{3});
  again.keep_only({1, 2});
  CHECK(again.steps() == Steps{2});
  BestStates older(1);
  older.restore(nullptr, "m");
  CHECK(older.steps().empty());
  CHECK(older.without_best() == 0);
}

TEST_CASE("best states: a record that is none is a storage error") {
  BestStates best(1);
  evaluated(best, 1, 5);
  const Json whole = best.to_json();
  for (const char* member : {"states", "lowest", "last_evaluated", "without_best"}) {
    for (const Json& wrong : {Json("x"), Json(-1), Json(JsonArray{1})}) {
      Json record = whole;
      record[member] = wrong;
      INFO(record.dump());
      const auto raised = raised_by([&] { BestStates(1).restore(&record, "m/manifest.json"); });
      CHECK(raised.code == ExitCode::storage);
      CHECK(raised.says("m/manifest.json: best"));
    }
  }
}
