// States that several ranks write together: one root, files of each rank, one commit.
#include <set>

#include "state/state_manifest.h"
#include "support/path_calls.h"
#include "support/raises.h"
#include "train/crash_fixture.h"
#include "train/shared_save.h"

namespace hearth::test {
namespace {

constexpr char kOfOther[] = "weights.rank-1.safetensors";

TEST_CASE("shared saves: files of each rank\\, and the digests of a state of one file") {
  const TemporaryDirectory out;
  SavedRun run;
  SharedSave shared(run);
  const SavedState saved = shared.save(out.path(), 7);
  CHECK((shared.begun == 1 && shared.waited == 1 && shared.ended == 1));
  CHECK(list_directory(saved.directory) ==
        std::vector<std::string>{"cursor.safetensors", "history.safetensors", "manifest.json",
                                 "weights.rank-0.safetensors", kOfOther});
  CHECK(saved.digest == state_digest(run.registry));
  const SavedState verified = verify_state(saved.directory);
  CHECK(verified.digest == saved.digest);
  const std::vector<std::string> weights{"weights.rank-0.safetensors", kOfOther};
  CHECK(verified.weights == weights);
  CHECK(saved.weights == weights);
  const std::string path = saved.directory + "/manifest.json";
  const StateManifest manifest = parse_manifest(read_file(path), path);
  CHECK(manifest.version == 2);
  CHECK(manifest.files[0].tensors == std::vector<std::string>{"model.embed", "empty"});
  CHECK(manifest.files[1].tensors == std::vector<std::string>{"head"});
  CHECK(manifest.files[1].rank == 1);
  CHECK(manifest.files[2].tensors.empty());
  // Of one writer: one file each, and readers of version 1 know what that means.
  const SavedState whole = save_state(run.registry, out.path(), 8, 5, kExtra);
  CHECK(whole.digest == saved.digest);
  CHECK(parse_manifest(read_file(whole.directory + "/manifest.json"), "whole").version == 1);
  if (has_python()) {
    const std::string read = read_by_the_page(saved.directory);
    CHECK(read.starts_with("0\n"));
    CHECK(read == read_by_the_page(whole.directory));
  }
}

TEST_CASE("shared saves: any ranks load them\\, and what is not here goes where it belongs") {
  const TemporaryDirectory out;
  SavedRun run(3);
  SharedSave shared(run);
  const auto same = [&](const SavedRun& loaded) {
    return loaded.embedding == run.embedding && loaded.head == run.head &&
           loaded.history == run.history && loaded.cursor == run.cursor;
  };
  shared.save(out.path(), 1);
  save_state(run.registry, out.path(), 2, 5, kExtra);
  for (const int64_t step : {1, 2}) {
    const SavedState state = open_state(out / "state/" + state_directory_name(step));
    SavedRun alone(9), other(9);
    load_state(alone.registry, state);
    CHECK(same(alone));
    load_state(SharedSave(other).first, state);
    CHECK(same(other));
    SavedRun weights(9);
    load_weights(weights.registry, state);
    CHECK((weights.embedding == run.embedding && weights.head == run.head));
  }
}

TEST_CASE("shared saves: what another process reads is checked\\, and not read here") {
  const TemporaryDirectory out;
  SavedRun run(3);
  SharedSave shared(run);
  shared.save(out.path(), 1);
  save_state(run.registry, out.path(), 2, 5, kExtra);
  for (const int64_t step : {1, 2}) {
    const SavedState state = open_state(out / "state/" + state_directory_name(step));
    const std::string of_head = step == 1 ? kOfOther : "weights.safetensors";
    SavedRun into(9);
    SharedSave both(into);
    SharedLoad readers(both);
    {
      std::set<std::string> here;
      PathCalls calls;
      calls.on_read = [&](const std::string& path) {
        if (!readers.is_reading) here.insert(path.substr(path.rfind('/') + 1));
        return 0;
      };
      const FileCallsOverride guard(calls);
      load_state(both.first, state, &readers);
      CHECK_FALSE(here.contains(kOfOther));
    }
    CHECK((readers.begun == 1 && readers.ended == 1));
    CHECK((into.embedding == run.embedding && into.head == run.head));
    CHECK((into.history == run.history && into.cursor == run.cursor));
    CHECK(into.restored == 1);
    const auto refused = [&](const std::string& part) {
      SavedRun again(9);
      SharedSave of(again);
      SharedLoad bad(of);
      bad.spoils = readers.spoils;
      const Raised raised = raised_by([&] { load_state(of.first, state, &bad); });
      INFO(raised.message);
      CHECK(raised.code == ExitCode::storage);
      CHECK(raised.says(state.directory + "/" + of_head + ": " + part));
      CHECK(again.restored == 0);
    };
    readers.spoils = true;  // other bytes than those of the file
    refused("changed after it was checked");
    readers.spoils = false;
    const std::string path = state.directory + "/" + of_head, whole = read_file(path);
    std::string bad = whole;
    bad.back() ^= 1;
    overwrite(path, bad);
    refused("chunk digest mismatch");
    overwrite(path, whole);
  }
}

TEST_CASE("shared saves: a file of a rank that is missing or damaged is named") {
  const TemporaryDirectory out;
  SavedRun run;
  SharedSave shared(run);
  save_state(run.registry, out.path(), 1, 5, kExtra);
  const auto damaged = [&](const std::function<void(const std::string&)>& damage) {
    const std::string directory = shared.save(out.path(), 2).directory;
    damage(directory);
    const Found found = find(out);
    REQUIRE(found.state);
    CHECK(found.state->step == 1);
    REQUIRE(found.rejected.size() == 1);
    CHECK(found.rejected[0].file == kOfOther);
    const std::string text = found.rejected[0].message();
    CHECK(text.find(directory + "/" + kOfOther + ": ") != std::string::npos);
    SavedRun into(5);
    const Raised raised = raised_by([&] { load_state(into.registry, open_state(directory)); });
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says(directory + "/" + kOfOther));
    remove_tree(directory);
  };
  damaged([](const std::string& state) { remove_file(state + "/" + kOfOther); });
  damaged([](const std::string& state) {
    std::string content = read_file(state + "/" + kOfOther);
    content.back() ^= 1;
    overwrite(state + "/" + kOfOther, content);
  });
  damaged([](const std::string& state) {  // whole, but of other tensors
    overwrite(state + "/" + kOfOther, read_file(state + "/weights.rank-0.safetensors"));
  });
}

TEST_CASE("shared saves: nothing is published if a rank cannot write") {
  const TemporaryDirectory out;
  SavedRun run;
  SharedSave shared(run);
  save_state(run.registry, out.path(), 1, 5, kExtra);
  shared.before_other = [] { throw storage_error("rank 1 (host b): no space"); };
  const Raised raised = raised_by([&] { shared.save(out.path(), 2); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("rank 1 (host b): no space"));
  CHECK(states(out) == std::vector<std::string>{"step-00000001"});
  CHECK(shared.ended == 1);
  // If this one cannot, nothing is removed while the other may still write.
  PathCalls full;
  full.on_write = [](const std::string& path) {
    return path.find("rank-0") != std::string::npos ? -ENOSPC : 0;
  };
  bool was_there = false;
  shared.before_other = [&] { was_there = list_directory(out / "state").size() == 2; };
  {
    const FileCallsOverride guard(full);
    const Raised own = raised_by([&] { shared.save(out.path(), 2); });
    CHECK(own.code == ExitCode::storage);
    CHECK(own.says("weights.rank-0.safetensors"));
  }
  CHECK(was_there);
  CHECK(states(out) == std::vector<std::string>{"step-00000001"});
  CHECK((shared.begun == 2 && shared.waited == 2 && shared.ended == 2));
  shared.before_other = {};
  CHECK(verify_state(shared.save(out.path(), 2).directory).step == 2);
}

TEST_CASE("shared saves: what a lost rank may still write into stays for the next start") {
  const TemporaryDirectory out;
  SavedRun run;
  SharedSave shared(run);
  save_state(run.registry, out.path(), 1, 5, kExtra);
  shared.is_lost = true;
  shared.before_other = [] { throw Error(ExitCode::device, "rank 1 (host b) died"); };
  const Raised raised = raised_by([&] { shared.save(out.path(), 2); });
  CHECK(raised.code == ExitCode::device);
  CHECK(shared.beats > 0);
  CHECK(states(out) == std::vector<std::string>{".tmp-step-00000002", "step-00000001"});
  remove_leftovers(out.path());
  CHECK(states(out) == std::vector<std::string>{"step-00000001"});
}

TEST_CASE("shared saves: a manifest that lists impossible parts is refused") {
  const TemporaryDirectory out;
  SavedRun run;
  SharedSave shared(run);
  const std::string path = shared.save(out.path(), 1).directory + "/manifest.json";
  const StateManifest good = parse_manifest(read_file(path), path);
  const auto refused = [&](const std::string& part,
                           const std::function<void(StateManifest&)>& change) {
    StateManifest bad = good;
    change(bad);
    const Raised raised = raised_by([&] { parse_manifest(manifest_text(bad), "manifest"); });
    INFO(raised.message);
    CHECK(raised.code == ExitCode::input);
    CHECK(raised.says(part));
  };
  refused("file: ", [](StateManifest& m) { m.version = 1; });
  refused("version: 2, but no rank",
          [](StateManifest& m) { m.files.erase(m.files.begin(), m.files.begin() + 2); });
  refused("component appears twice", [](StateManifest& m) { m.files[1].rank = 0; });
  refused("component appears twice", [](StateManifest& m) { m.files[0].rank.reset(); });
  refused("component appears twice", [](StateManifest& m) { std::swap(m.files[0], m.files[1]); });
  refused("component appears twice", [](StateManifest& m) { std::swap(m.files[1], m.files[2]); });
  refused("tensor 'head' of weights appears twice",
          [](StateManifest& m) { m.files[0].tensors.push_back("head"); });
  refused("rank", [](StateManifest& m) { m.files[0].rank = -1; });
}

/// Saves of both ranks in the place of those of one.
class SharedCrashSaves : public CrashSaves {
 public:
  using CrashSaves::CrashSaves;
  void save_shared(int64_t step) {
    FaultyCalls calls(disk);
    const FileCallsOverride guard(calls);
    CrashContent run(step);
    SharedSave(run).save(kCrashRun, step, keep);
    disk.promise(static_cast<int>(step));
  }
};

TEST_CASE("shared saves: a power loss leaves the old state or the new one") {
  for (const int keep : {1, 2}) {
    SharedCrashSaves saves(keep);
    saves.save_shared(1);
    saves.disk.settle();
    saves.disk.promise(1);
    saves.save_shared(2);
    const CrashReport report = saves.judge({2}, {}, 1);
    CHECK(report.fault == "");
    CHECK(report.states > 200);
  }
}

}  // namespace
}  // namespace hearth::test
