// Saving against every failing call, and its order of writes.
#include <algorithm>

#include "support/failing_calls.h"
#include "support/recording_calls.h"
#include "train/state_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("a save that fails at any call leaves the older states whole and nothing behind") {
  FailingCalls quick;
  const FileCallsOverride no_syncs(quick);
  for (const int error : {EIO, ENOSPC}) {
    for (const bool persistent : {false, true}) {
      for (int n = 1;; ++n) {
        INFO("call " << n << " fails, and all after it: " << persistent);
        const TemporaryDirectory out;
        SavedRun run(1);
        save_state(run.registry, out.path(), 1, 2, kExtra);
        save_state(run.registry, out.path(), 2, 2, kExtra);
        run.history.push_back(8);
        FailingCalls calls;
        calls.fail_at = n;
        calls.error = error;
        calls.persistent = persistent;
        bool saved = true;
        {
          const FileCallsOverride guard(calls);
          try {
            save_state(run.registry, out.path(), 3, 2, kExtra);
          } catch (const Error& e) {
            CHECK(e.code() == ExitCode::storage);
            saved = false;
          }
        }
        const std::vector<std::string> names = states(out);
        const auto has = [&](const char* name) {
          return std::find(names.begin(), names.end(), name) != names.end();
        };
        CHECK((has("step-00000001") || saved));
        CHECK(has("step-00000002"));
        CHECK((!saved || has("step-00000003")));
        for (const std::string& name : names) {
          if (name.starts_with("step-")) CHECK(damage_of(out / ("state/" + name)).empty());
        }
        if (!persistent && !saved) {
          CHECK(names == std::vector<std::string>{"step-00000001", "step-00000002"});
        }
        // The same run later: leftovers go, and the save succeeds.
        remove_leftovers(out.path());
        if (find(out).state->step != 3) save_state(run.registry, out.path(), 3, 2, kExtra);
        CHECK(find(out).state->digest == state_digest(run.registry));
        for (const std::string& name : states(out)) CHECK(name.starts_with("step-"));
        if (!calls.failed()) {
          CHECK(saved);
          CHECK(n > 25);
          break;
        }
      }
    }
  }
}

TEST_CASE("nothing is published before it is durable") {
  const TemporaryDirectory out;
  const SavedRun run;
  RecordingCalls calls;
  const FileCallsOverride guard(calls);
  save_state(run.registry, out.path(), 1, 1, kExtra);
  save_state(run.registry, out.path(), 2, 1, kExtra);

  const std::string hidden = out / "state/.tmp-step-00000002";
  const int64_t commit = calls.last("rename " + hidden + " " + (out / "state/step-00000002"));
  const int64_t directory = calls.last("sync " + hidden);
  const int64_t manifest = calls.last("write " + hidden + "/manifest.json");
  for (const char* name : {"weights.safetensors", "history.safetensors", "cursor.safetensors"}) {
    const int64_t synced = calls.last("sync " + hidden + "/" + name);
    CHECK((synced > calls.last("write " + hidden + "/" + name) && synced < manifest));
  }
  const int64_t manifest_synced = calls.last("sync " + hidden + "/manifest.json");
  CHECK((manifest_synced > manifest && manifest_synced < directory));
  CHECK(directory < commit);
  const auto durable =
      std::find(calls.lines.begin() + commit, calls.lines.end(), "sync " + (out / "state"));
  REQUIRE(durable != calls.lines.end());
  // The older state goes after that.
  const auto removed = std::find(
      durable, calls.lines.end(),
      "rename " + (out / "state/step-00000001") + " " + (out / "state/.trash-step-00000001"));
  REQUIRE(removed != calls.lines.end());
  // Its new name is durable before what it holds goes.
  CHECK(std::find(removed, calls.lines.end(), "sync " + (out / "state")) != calls.lines.end());
}

TEST_CASE("interrupts and short writes change nothing in a state") {
  const TemporaryDirectory out;
  const SavedRun run;
  FailingCalls calls;
  calls.piece = 13;
  calls.interrupts = true;
  const FileCallsOverride guard(calls);
  const SavedState saved = save_state(run.registry, out.path(), 1, 2, kExtra);
  CHECK(verify_state(saved.directory).digest == state_digest(run.registry));
}

TEST_CASE("memory that changes during a save is a bug that shows") {
  const TemporaryDirectory out;
  SavedRun run;
  struct Changing : FileCalls {
    SavedRun* run;
    int64_t pwrite(int fd, const void* b, size_t n, uint64_t at) override {
      run->head[0] += 1;
      return FileCalls::pwrite(fd, b, n, at);
    }
  } calls;
  calls.run = &run;
  const FileCallsOverride guard(calls);
  CHECK_THROWS_AS(save_state(run.registry, out.path(), 1, 2, kExtra), std::logic_error);
  CHECK(states(out).empty());
}

}  // namespace
}  // namespace hearth::test
