// Finding, loading and cleaning with every call failing in turn: no crash, the right code, and no
// state lost.
#include "support/failing_calls.h"
#include "train/crash_fixture.h"

namespace hearth::test {
namespace {

/// A run directory in memory: states of steps 1 and 2, and what a killed process left.
std::vector<MemoryDisk::Node> some_states() {
  CrashSaves saves(2);
  saves.save(1);
  saves.save(2);
  const FileCallsOverride guard(saves.disk);
  make_directory(kCrashRun + "/state/.tmp-step-00000003");
  write_file_atomically(kCrashRun + "/state/.tmp-step-00000003/weights.safetensors", "torn");
  AppendFile log(kCrashRun + "/metrics.jsonl");
  log.line("{\"step\":1}");
  log.record("{\"ste");
  saves.disk.settle();
  return saves.disk.durable_nodes();
}

/// Runs `action` on a fresh disk with call 1, 2, ... failing, until none fails; `check` sees the disk
/// afterwards. Returns the number of calls.
int fail_each(int error, const std::function<void()>& action,
              const std::function<void(MemoryDisk&, bool succeeded)>& check) {
  const auto nodes = some_states();
  for (int n = 1;; ++n) {
    INFO("call " << n << " fails with " << error);
    MemoryDisk disk(kDisk, nodes);
    FailingCalls failing(disk);
    failing.fail_at = n;
    failing.error = error;
    FaultyCalls calls(failing);
    bool succeeded = true;
    {
      const FileCallsOverride guard(calls);
      try {
        action();
      } catch (const Error& e) {
        CHECK(e.code() == ExitCode::storage);
        succeeded = false;
      }
    }
    if (!failing.failed()) {
      CHECK(succeeded);
      return n - 1;
    }
    const FileCallsOverride guard(disk);
    check(disk, succeeded);
    for (const char* state : {"1", "2"}) {
      CHECK(damage_of(kCrashRun + "/state/step-0000000" + state).empty());
    }
  }
}

std::optional<SavedState> newest() {
  return find_newest_state(kCrashRun, [](const RejectedState&) {});
}

TEST_CASE("failing calls: a state is found and loaded, or a storage error, and nothing changes") {
  for (const int error : {EIO, ENOSPC, ENOMEM, EMFILE}) {
    const auto find_and_load = [] {
      const auto state = newest();
      REQUIRE(state);
      SavedRun loaded(-1);
      load_state(loaded.registry, *state);
      CHECK(state_digest(loaded.registry) == state->digest);
    };
    const auto unchanged = [](MemoryDisk& disk, bool) { CHECK(disk.changes().empty()); };
    CHECK(fail_each(error, find_and_load, unchanged) > 25);
  }
}

TEST_CASE("failing calls: a clean-up that failed is made by the next start") {
  for (const int error : {EIO, ENOSPC, EACCES}) {
    const auto clean = [] {
      remove_leftovers(kCrashRun);
      cut_torn_line(kCrashRun + "/metrics.jsonl");
    };
    const auto again = [&](MemoryDisk&, bool) {
      clean();
      CHECK(list_directory(kCrashRun + "/state") ==
            std::vector<std::string>{"step-00000001", "step-00000002"});
      CHECK(read_file(kCrashRun + "/metrics.jsonl") == "{\"step\":1}\n");
      CHECK(newest()->step == 2);
    };
    CHECK(fail_each(error, clean, again) > 10);
  }
}

TEST_CASE("failing calls: a save that fails leaves what there was, and succeeds later") {
  const CrashContent run(3);
  for (const int error : {EIO, ENOSPC, EROFS, EFBIG, EDQUOT}) {
    const auto save = [&] { save_state(run.registry, kCrashRun, 3, 3, kExtra); };
    const auto check = [&](MemoryDisk&, bool succeeded) {
      CHECK(newest()->step == (succeeded ? 3 : 2));
      remove_leftovers(kCrashRun);
      if (!succeeded) save();
      CHECK(newest()->digest == state_digest(run.registry));
      CHECK(list_directory(kCrashRun + "/state").size() == 3);
    };
    CHECK(fail_each(error, save, check) > 40);
  }
}

TEST_CASE("failing calls: short transfers and interrupts change nothing") {
  MemoryDisk disk(kDisk, some_states());
  FailingCalls failing(disk);
  failing.piece = 13;
  failing.interrupts = true;
  FaultyCalls calls(failing);
  const FileCallsOverride guard(calls);
  remove_leftovers(kCrashRun);
  cut_torn_line(kCrashRun + "/metrics.jsonl");
  const CrashContent run(3);
  save_state(run.registry, kCrashRun, 3, 2, kExtra);
  const auto found = newest();
  REQUIRE(found);
  CHECK(found->step == 3);
  SavedRun loaded(-1);
  load_state(loaded.registry, *found);
  CHECK(state_digest(loaded.registry) == state_digest(run.registry));
}

TEST_CASE("failing calls: a state is never replaced") {
  MemoryDisk disk(kDisk, some_states());
  FaultyCalls calls(disk);
  const FileCallsOverride guard(calls);
  const CrashContent other(7);
  CHECK_THROWS_AS(save_state(other.registry, kCrashRun, 2, 2, kExtra), Error);
  CHECK(damage_of(kCrashRun + "/state/step-00000002").empty());
  SavedRun loaded(-1);
  load_state(loaded.registry, *newest());
  CHECK(loaded.history == CrashContent(2).history);
}

}  // namespace
}  // namespace hearth::test
