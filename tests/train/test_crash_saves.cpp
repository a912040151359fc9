// Every state that a power loss may leave during a save opens as the old one or the new one, whole.
#include "support/planted.h"
#include "train/crash_fixture.h"

namespace hearth::test {
namespace {

const CrashBounds kQuickBounds;
const CrashBounds kThoroughBounds{200000, 20000, 7};

void check_report(const CrashReport& report) {
  CHECK(report.fault == "");
  CHECK(report.states > 500);
}

/// All the situations in which a step is saved; returns how many states were looked at.
CrashReport all_situations(const CrashBounds& bounds) {
  CrashReport sum;
  const auto add = [&](const CrashReport& report) {
    sum.states += report.states;
    sum.distinct += report.distinct;
    sum.fault = report.fault;
    return sum.fault.empty();
  };
  {  // the first save of a run
    CrashSaves saves(2);
    saves.save(1);
    if (!add(saves.judge({1}, bounds))) return sum;
  }
  for (const int keep : {1, 2}) {  // with older ones, the oldest of which goes
    CrashSaves saves(keep);
    saves.save(1);
    saves.save(2);
    saves.disk.settle();
    saves.disk.promise(2);
    saves.save(3);
    if (!add(saves.judge({3}, bounds, 2))) return sum;
  }
  {  // three in a row, nothing settled in between
    CrashSaves saves(1);
    for (const int step : {1, 2, 3}) saves.save(step);
    add(saves.judge({1, 2, 3}, bounds));
  }
  return sum;
}

TEST_CASE("crash states of saves open as the old state or the new one") {
  const CrashReport report = all_situations(kQuickBounds);
  check_report(report);
}

TEST_CASE("crash states of saves, all of them", "[.long]") {
  const CrashReport report = all_situations(kThoroughBounds);
  check_report(report);
  WARN(report.states << " crash states, " << report.distinct << " distinct");
}

TEST_CASE("crash states of a save over what a killed process left") {
  CrashSaves first(2);
  first.save(1);
  first.disk.settle();
  first.disk.promise(1);
  first.save(2);
  const size_t all = first.disk.changes().size();
  CrashReport sum;
  for (size_t killed = 0; killed <= all && sum.fault.empty(); killed += 4) {
    CrashSaves saves(2);
    const auto left = first.disk.killed_after(killed);
    FaultyCalls calls(*left);
    {
      const FileCallsOverride guard(calls);
      remove_leftovers(kCrashRun);
      REQUIRE(find_newest_state(kCrashRun, [](const RejectedState&) {}));
      left->promise(1);
      const CrashContent run(3);
      save_state(run.registry, kCrashRun, 3, 2, kExtra);
      left->promise(3);
    }
    CrashBounds bounds{100, 10, killed + 1, killed};
    bounds.stride = 2;
    const auto report = crash_states(*left, bounds, [&](MemoryDisk& crashed, int promised) {
      FaultyCalls again(crashed);
      const FileCallsOverride guard(again);
      try {
        return saves.fault_of(promised == 3 ? std::set<int64_t>{3} : std::set<int64_t>{1, 2, 3});
      } catch (const std::exception& error) {
        return std::string("refused: ") + error.what();
      }
    });
    sum.states += report.states;
    sum.distinct += report.distinct;
    if (!report.fault.empty())
      sum.fault = report.fault + "\nkilled after " + std::to_string(killed);
  }
  check_report(sum);
}

TEST_CASE("crash states of a save that replaces a rejected state") {
  CrashSaves saves(2);
  saves.save(1);
  saves.save(2);
  {
    const FileCallsOverride guard(saves.disk);
    // Step 2 is damaged, the run goes on from step 1 and comes to step 2 again.
    remove_file(kCrashRun + "/state/step-00000002/history.safetensors");
  }
  saves.disk.settle();
  saves.disk.promise(1);
  {
    const FileCallsOverride guard(saves.disk);
    std::vector<RejectedState> rejected;
    find_newest_state(kCrashRun, [&](const RejectedState& bad) { rejected.push_back(bad); });
    REQUIRE(rejected.size() == 1);
    set_aside(rejected);
  }
  saves.save(2);
  const auto report =
      crash_states(saves.disk, kQuickBounds, [&](MemoryDisk& crashed, int promised) {
        const FileCallsOverride guard(crashed);
        std::vector<RejectedState> rejected;
        const auto found = find_newest_state(
            kCrashRun, [&](const RejectedState& bad) { rejected.push_back(bad); });
        if (!found) return std::string("no state");
        if (found->step < promised) return std::string("the older state after a save");
        // Only the state that was damaged before may be rejected, and it is set aside again.
        for (const RejectedState& bad : rejected) {
          if (bad.file != "history.safetensors") return bad.message();
        }
        set_aside(rejected);
        return std::string(find_newest_state(kCrashRun, [](const RejectedState&) {})->step ==
                                   found->step
                               ? ""
                               : "another after it was set aside");
      });
  CHECK(report.fault == "");
  CHECK(report.states > 100);
}

TEST_CASE("crash states show a save that syncs too little or too late") {
  for (const char* fault : {"skip-sync-component", "skip-sync-manifest", "skip-sync-temporary",
                            "skip-sync-parent", "rename-before-sync", "publish-before-manifest",
                            "retention-before-commit", "trash-without-name"}) {
    INFO(fault);
    const PlantedFault guard(fault);
    CHECK(all_situations({40, 4}).fault != "");
  }
}

}  // namespace
}  // namespace hearth::test
