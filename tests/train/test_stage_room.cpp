// Bounds that show without a schedule that nothing fits, against plans.
#include <catch2/catch_test_macros.hpp>

#include "base/sanitized.h"
#include "budget/needed_memory.h"
#include "budget/stage_room.h"
#include "train/same_bits.h"

namespace hearth::test {
namespace {

TEST_CASE("stage room: what fits is never ruled out, and what parameters rule out does not fit") {
  SameBitsFixture f;
  int fit = 0, ruled_out = 0;
  for (const TrainedWith& with : {TrainedWith{"qwen3_moe"}, TrainedWith{"tied"}}) {
    for (const RunsOn& on : {RunsOn{.devices = 2}, RunsOn{.devices = 2, .host = "host"}}) {
      TrainConfig config = f.config_of(with, "x");
      config.devices = device_list(on);
      RecordingReporter reporter;
      const PlannedRun run(config, open_model(config), reporter);
      for (const int64_t group : {int64_t{0}, int64_t{1}}) {
        PlanRequest request = run.request;
        if (group > 0) request.group = group;
        const uint64_t step = kSanitized ? 8 : 1;
        for (uint64_t bytes = 4096; bytes < uint64_t{64} << 20; bytes += bytes / 2 * step) {
          PlanSubject subject = subject_of(run.model);
          for (const Place at : subject.of_model.dense) {
            subject.places[static_cast<size_t>(at)].budget.bytes = bytes;
          }
          const bool fits = plan_placement(subject, request).plan.fits();
          INFO(text_of(with, on) << ", group " << group << ", " << bytes);
          if (fits) CHECK(may_fit(subject, request));
          fit += fits;
          ruled_out += !may_fit(subject, request);
        }
      }
    }
  }
  CHECK(fit > 0);
  CHECK(ruled_out > 0);
}

}  // namespace
}  // namespace hearth::test
