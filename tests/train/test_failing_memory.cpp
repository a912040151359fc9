// Memory that is exhausted at any allocation of a save, a load or a short run: an error, whole states,
// and the same command ends at the same bits later.
#include "support/counted_memory.h"

#include <new>

#include "budget/plan_time.h"
#include "train/crash_fixture.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// Runs the action with its n-th allocation failing, which may end it for want of memory. False if it
/// made fewer.
bool fails(int64_t n, const std::function<void()>& action) {
  ExitCode code = ExitCode::storage;
  fail_allocation(n);
  try {
    action();
  } catch (const std::bad_alloc&) {
  } catch (const Error& error) {
    code = error.code();
  }
  const bool reached = allocations() >= n;
  fail_allocation(0);
  CHECK(code == ExitCode::storage);
  return reached;
}

TEST_CASE("failing memory: every allocation of a save and of a load") {
  const CrashContent run(3);
  CrashSaves saves(3);
  saves.save(1);
  saves.save(2);
  saves.disk.settle();
  const auto nodes = saves.disk.durable_nodes();
  int64_t failed = 0;
  for (int64_t n = 1;; ++n) {
    INFO("allocation " << n);
    MemoryDisk disk(kDisk, nodes);
    const FileCallsOverride guard(disk);
    const bool failing = fails(n, [&] { save_state(run.registry, kCrashRun, 3, 3, kExtra); });
    for (const char* state : {"1", "2"}) {
      REQUIRE(damage_of(kCrashRun + "/state/step-0000000" + state).empty());
    }
    if (!failing) break;
    ++failed;
    remove_leftovers(kCrashRun);
    if (file_info(kCrashRun + "/state/step-00000003").kind == FileKind::none) {
      save_state(run.registry, kCrashRun, 3, 3, kExtra);
    }
    REQUIRE(damage_of(kCrashRun + "/state/step-00000003").empty());
  }
  CHECK(failed > 100);

  MemoryDisk disk(kDisk, nodes);
  const FileCallsOverride guard(disk);
  for (int64_t n = 1;; ++n) {
    INFO("allocation " << n);
    const bool failing = fails(n, [&] {
      const auto state = find_newest_state(kCrashRun, [](const RejectedState&) {});
      SavedRun loaded(-1);
      if (state) load_state(loaded.registry, *state);
    });
    if (!failing) break;
  }
  CHECK(disk.changes().empty());
}

/// Runs to the end after a stop, with allocations failing that are spread over the whole run.
void spread_over_a_run(int64_t points) {
  const AssumedRates quick;
  TrainingFixture f;
  TrainConfig config = f.config("run");
  config.out = kCrashRun;
  config.steps = 2;
  MemoryDisk disk(kDisk);
  std::string expected;
  int64_t all = 0;
  const auto result = [] { return read_file(kCrashRun + "/model/model.safetensors"); };
  {
    const FileCallsOverride guard(disk);
    fail_allocation(0);
    REQUIRE(f.run(config) == ExitCode::done);
    all = allocations();
    expected = result();
  }
  for (int64_t point = 0; point < points; ++point) {
    const int64_t n = 1 + all * point / points;
    INFO("allocation " << n << " of about " << all);
    MemoryDisk fresh(kDisk);
    const FileCallsOverride guard(fresh);
    fails(n, [&] { f.run(config); });
    CHECK(f.run(config) == ExitCode::done);
    CHECK(result() == expected);
  }
}

TEST_CASE("failing memory: allocations of a run") { spread_over_a_run(3); }
TEST_CASE("failing memory: more allocations of a run", "[.long]") { spread_over_a_run(300); }

}  // namespace
}  // namespace hearth::test
