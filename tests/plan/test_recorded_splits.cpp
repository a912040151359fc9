// The splits of an earlier run: what they answer, and what is told when one is missing.
#include <catch2/catch_test_macros.hpp>

#include "plan/decisions/recorded_splits.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

/// Two experts, the first on the device.
RecordedSplit recorded_at(int64_t line, int32_t tokens) {
  return {line, {tokens, 1}, {1, 0}, {SplitReason::loaded, SplitReason::host_balance}};
}

TEST_CASE("recorded splits: those of a layer's groups, one after the other") {
  RecordedSplits splits("j");
  splits.add(1, 0, recorded_at(4, 5));
  splits.add(1, 0, recorded_at(5, 6));
  const std::vector<double> tokens = {6, 1};
  const ExpertSplit split = splits.split(1, 0, 1, tokens);
  CHECK(split.device == std::vector<int32_t>{0});
  CHECK(split.host == std::vector<int32_t>{1});
  CHECK(split.reasons == std::vector{SplitReason::loaded, SplitReason::host_balance});
  CHECK(raised_by([&] { splits.split(1, 0, 0, tokens); }).says("j:4: expert 0 of layer 0 had 5"));
  CHECK(raised_by([&] { splits.split(1, 0, 2, tokens); }).says("is missing (2 found)"));
}

TEST_CASE("recorded splits: an expert without tokens is nowhere") {
  RecordedSplits splits("j");
  splits.add(1, 0, {1, {0, 3}, {0, 1}, {SplitReason::none, SplitReason::resident}});
  const std::vector<double> tokens = {0, 3};
  const ExpertSplit split = splits.split(1, 0, 0, tokens);
  CHECK(split.device == std::vector<int32_t>{1});
  CHECK(split.host.empty());
}

TEST_CASE("recorded splits: what was computed again counts as it was computed last") {
  RecordedSplits splits("j");
  for (const int64_t step : {1, 2, 3}) splits.add(step, 0, recorded_at(step, 5));
  splits.forget_after(1);
  splits.add(2, 0, recorded_at(7, 9));
  splits.set_lines(7);
  splits.require(1, 2, {{0, 1}});
  CHECK(splits.split(2, 0, 0, std::vector<double>{9, 1}).device.size() == 1);
  const Raised missing = raised_by([&] { splits.require(1, 3, {{0, 1}}); });
  CHECK(missing.code == ExitCode::input);
  CHECK(missing.says("j:7: behind this line"));
  CHECK(missing.says("layer 0 in step 3"));
  splits.forget_after(0);
  CHECK(raised_by([&] { splits.require(1, 1, {{0, 1}}); }).says("j:7: behind"));
  splits.add(1, 1, recorded_at(8, 5));
  CHECK(raised_by([&] { splits.require(1, 1, {{0, 1}}); }).says("j:7: behind"));
}

TEST_CASE("recorded splits: other groups are another run's") {
  RecordedSplits splits("j");
  for (const int64_t line : {1, 2, 3}) splits.add(1, 2, recorded_at(line, 5));
  splits.add(2, 2, recorded_at(9, 5));
  CHECK(raised_by([&] { splits.require(1, 1, {{2, 2}}); }).says("j:3: layer 2 is decided on 3"));
  CHECK(raised_by([&] { splits.require(1, 2, {{2, 3}}); }).says("(1 found)"));
  CHECK(raised_by([&] { splits.require(1, 1, {{2, 4}}); }).says("j:3: behind this line"));
}

}  // namespace
}  // namespace hearth::test
