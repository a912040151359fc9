// What a program does with saved states of older and newer format versions
// (docs/checkpoint-format.md, "Versions").
#include "state/state_manifest.h"
#include "support/raises.h"
#include "support/test_paths.h"
#include "train/state_fixture.h"

namespace hearth::test {
namespace {

/// Writes the manifest of a state again with another version, under a right digest.
void set_version(const std::string& directory, int64_t version) {
  const std::string path = directory + "/" + kManifestName;
  StateManifest manifest = parse_manifest(read_file(path), path);
  manifest.version = version;
  overwrite(path, manifest_text(manifest));
}

TEST_CASE("versions: a newer state is refused, named, and never passed over for an older one") {
  const TemporaryDirectory out;
  SavedRun run;
  save_state(run.registry, out.path(), 1, 5, kExtra);
  const std::string newer = save_state(run.registry, out.path(), 2, 5, kExtra).directory;
  set_version(newer, 3);
  const std::vector<std::string> before = states(out);
  const auto refused = [&](auto read) {
    const Raised raised = raised_by(read);
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says(newer + "/manifest.json: saved state of format version 3, this program reads "
                              "versions up to 2"));
  };
  refused([&] { find(out); });
  refused([&] { open_state(newer); });
  refused([&] { verify_state(newer); });
  CHECK_THROWS_AS(find(out), NewerState);
  CHECK(states(out) == before);
  // Nothing is reported as damaged, so nothing is set aside.
  CHECK_THROWS_AS(
      find_newest_state(out.path(), [](const RejectedState&) { FAIL_CHECK("passed over"); }),
      NewerState);
}

TEST_CASE("versions: members that a later version adds have a default in older manifests") {
  constexpr ManifestMember kFuture[] = {
      {"step"}, {"codec", 2, "\"none\""}, {"ranks", 3, "{\"count\": 1}"}};
  Json first = parse_json(R"({"step": 7})", "manifest"), second = first, third = first;
  second["codec"] = third["codec"] = "zstd";
  add_newer_members(first, 1, kFuture);
  add_newer_members(second, 2, kFuture);
  add_newer_members(third, 3, kFuture);
  CHECK(first.dump() == R"({"step": 7, "codec": "none", "ranks": {"count": 1}})");
  CHECK(second.dump() == R"({"step": 7, "codec": "zstd", "ranks": {"count": 1}})");
  CHECK(third.dump() == R"({"step": 7, "codec": "zstd"})");  // its own version must have it
}

TEST_CASE("versions: a component that a later version adds begins anew in an older state") {
  const TemporaryDirectory out;
  SavedRun run(3);
  const SavedState saved = save_state(run.registry, out.path(), 1, 2, kExtra);
  SavedRun into(1);
  std::string book = "as at step 1";
  int restored = 0;
  const auto load_since = [&](int64_t version) {
    StateRegistry registry;
    for (const StateComponent& component : into.registry.components()) registry.add(component);
    registry.add_text(
        "book", [&] { return book; },
        [&](const std::string& text) {
          book = text;
          ++restored;
        });
    StateRegistry later;
    for (StateComponent component : registry.components()) {
      if (component.name == "book") component.since = version;
      later.add(component);
    }
    load_state(later, saved);
  };
  load_since(2);
  CHECK(into.embedding == run.embedding);
  CHECK(into.cursor == run.cursor);
  CHECK(book == "as at step 1");
  CHECK(restored == 0);
  CHECK(raised_by([&] { load_since(1); }).says("component 'book' is missing"));
}

TEST_CASE("versions: a state that the first version of the program wrote is read") {
  // Written once, by revision bc6737462ef6; SavedRun is what it holds.
  const std::string golden = test_data("/state/step-00000007");
  const SavedRun as_saved(2);
  SavedRun loaded(1);
  const SavedState state = verify_state(golden);
  CHECK(state.digest == state_digest(as_saved.registry));
  load_state(loaded.registry, state);
  CHECK(loaded.embedding == as_saved.embedding);
  CHECK(loaded.history == as_saved.history);
  CHECK(loaded.cursor == as_saved.cursor);
  CHECK(state.extra.dump() == kExtra.dump());
  // What is saved today has the same bytes, file by file.
  const TemporaryDirectory out;
  const SavedState again = save_state(as_saved.registry, out.path(), 7, 1, kExtra);
  for (const std::string& file : list_directory(golden)) {
    INFO(file);
    CHECK(read_file(again.directory + "/" + file) == read_file(golden + "/" + file));
  }
}

TEST_CASE("versions: the second reader refuses a newer state, too") {
  if (!has_python()) SKIP("no python3 on this machine");
  const TemporaryDirectory out;
  const SavedRun run;
  const std::string state = save_state(run.registry, out.path(), 1, 5, kExtra).directory;
  CHECK(read_by_the_page(state).starts_with("0\n"));
  set_version(state, 3);
  CHECK(read_by_the_page(state) ==
        "1\nread_state: format version 3 is newer than this reader knows (2)\n");
}

}  // namespace
}  // namespace hearth::test
