// Saved state against every damage that a tiny one can have.
#include <cerrno>
#include <filesystem>

#include "support/path_calls.h"
#include "support/shrinking_file.h"
#include "train/state_fixture.h"

namespace hearth::test {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("every flipped byte and every truncation is noticed") {
  const TemporaryDirectory out;
  const SavedRun run;
  const SavedState saved = save_state(run.registry, out.path(), 5, 2, kExtra);
  for (const std::string& name : list_directory(saved.directory)) {
    const std::string path = saved.directory + "/" + name, whole = read_file(path);
    int unnoticed = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string bad = whole;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      overwrite(path, bad);
      const std::string damage = damage_of(saved.directory);
      if (damage.empty() || damage.find(name) == std::string::npos) ++unnoticed;
      overwrite(path, whole.substr(0, i));
      if (damage_of(saved.directory).empty()) ++unnoticed;
    }
    CHECK(unnoticed == 0);
    overwrite(path, whole + "x");
    CHECK_THAT(damage_of(saved.directory), ContainsSubstring(name));
    remove_file(path);
    CHECK_THAT(damage_of(saved.directory), ContainsSubstring(name));
    overwrite(path, whole);
  }
  CHECK(damage_of(saved.directory).empty());
}

TEST_CASE("a state that shrinks while it is read is rejected, never mixed") {
  const SavedRun older(1), newer(2);
  int rejected = 0;
  for (int n = 1;; ++n) {
    const TemporaryDirectory out;
    save_state(older.registry, out.path(), 1, 5, kExtra);
    save_state(newer.registry, out.path(), 2, 5, kExtra);
    SavedRun into(3);
    ShrinkingFile calls(n);
    const FileCallsOverride guard(calls);
    const Found found = find(out);
    INFO("read " << n << " of " << calls.path());
    REQUIRE(found.state.has_value());
    bool loaded = true;
    try {
      load_state(into.registry, *found.state);
    } catch (const DamagedState&) {
      loaded = false;
    }
    if (loaded) {
      const SavedRun& whole = found.state->step == 2 ? newer : older;
      CHECK(into.embedding == whole.embedding);
      CHECK(into.head == whole.head);
      CHECK(into.history == whole.history);
      CHECK(into.cursor == whole.cursor);
    }
    if (calls.path().empty()) break;
    rejected += !loaded || found.state->step == 1;
  }
  CHECK(rejected > 3);
}

TEST_CASE("damage to a large file is placed") {
  const TemporaryDirectory out;
  std::vector<int32_t> data((size_t{65} << 20) / 4, 7);
  StateRegistry registry;
  StateComponent large;
  large.name = "large";
  large.views = [&] {
    return std::vector<StateView>{
        SavedRun::view("t", DType::i32, {static_cast<int64_t>(data.size())}, data)};
  };
  registry.add(large);
  const std::string directory = save_state(registry, out.path(), 1, 2, kExtra).directory;
  CHECK(damage_of(directory).empty());
  std::fstream file(directory + "/large.safetensors", std::ios::in | std::ios::out);
  file.seekp((64 << 20) + 1000);
  file.put('x');
  file.close();
  CHECK_THAT(damage_of(directory),
             ContainsSubstring("large.safetensors: is damaged between bytes 67108864 and"));
  // Where only the tensor's digest tells, as the header is in another piece.
  CHECK_THROWS_AS(load_state(registry, open_state(directory)), DamagedState);
}

TEST_CASE("files and directories in the wrong place are noticed") {
  const TemporaryDirectory out, other;
  const SavedRun run(1), later(2);
  const std::string a = save_state(run.registry, out.path(), 1, 5, kExtra).directory;
  const std::string b = save_state(later.registry, out.path(), 2, 5, kExtra).directory;
  const auto swapped = [&](const std::string& name) {
    const std::string one = read_file(a + "/" + name), two = read_file(b + "/" + name);
    overwrite(a + "/" + name, two);
    const std::string damage = damage_of(a);
    overwrite(a + "/" + name, one);
    return damage;
  };
  CHECK_THAT(swapped("weights.safetensors"), ContainsSubstring("damaged between bytes 0 and"));
  CHECK_THAT(swapped("manifest.json"), ContainsSubstring("is of step 2"));
  std::filesystem::rename(a, other / "step-00000009");
  CHECK_THAT(damage_of(other / "step-00000009"), ContainsSubstring("is of step 1"));
  std::filesystem::rename(other / "step-00000009", other / "copy");
  CHECK(damage_of(other / "copy").empty());
  CHECK_THAT(damage_of(other / "missing"), ContainsSubstring("not a directory of saved state"));
}

TEST_CASE("a failing read passes a state over") {
  const TemporaryDirectory out;
  const SavedRun run;
  save_state(run.registry, out.path(), 1, 2, kExtra);
  save_state(run.registry, out.path(), 2, 2, kExtra);
  PathCalls calls;
  calls.on_read = [](const std::string& path) {
    return path.ends_with("step-00000002/manifest.json") ? -EIO : 0;
  };
  const FileCallsOverride guard(calls);
  const Found found = find(out);
  REQUIRE(found.rejected.size() == 1);
  CHECK_THAT(found.rejected[0].reason, ContainsSubstring("cannot read"));
  CHECK(found.state->step == 1);
}

TEST_CASE("a dropped or new component, view, type or shape is noticed before anything is used") {
  const TemporaryDirectory out;
  const SavedRun run;
  const SavedState saved = save_state(run.registry, out.path(), 1, 2, kExtra);
  const auto refusal = [&](const StateRegistry& registry) -> std::string {
    try {
      load_state(registry, saved);
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::storage);
      return e.what();
    }
    return "loaded";
  };
  for (size_t dropped = 0; dropped < 3; ++dropped) {
    SavedRun other;
    StateRegistry fewer;
    for (size_t i = 0; i < 3; ++i) {
      if (i != dropped) fewer.add(other.registry.components()[i]);
    }
    CHECK_THAT(refusal(fewer), ContainsSubstring("unknown component for this run"));
    CHECK(other.restored == 0);
  }
  SavedRun more;
  more.registry.add_text(
      "extra", [] { return ""; }, [](const std::string&) {});
  CHECK_THAT(refusal(more.registry), ContainsSubstring("component 'extra' is missing"));

  const auto with_views = [&](auto change) {
    SavedRun other;
    StateRegistry registry;
    for (StateComponent c : other.registry.components()) {
      if (c.name == "weights") {
        c.views = [views = c.views, change] {
          std::vector<StateView> changed = views();
          change(changed);
          return changed;
        };
      }
      registry.add(c);
    }
    const std::string what = refusal(registry);
    CHECK(other.restored == 0);
    return what;
  };
  using Views = std::vector<StateView>;
  CHECK_THAT(with_views([](Views& v) { v.pop_back(); }), ContainsSubstring("'empty'"));
  CHECK_THAT(with_views([](Views& v) { v[1].name = "tail"; }),
             ContainsSubstring("tensor 'tail' is missing"));
  CHECK_THAT(with_views([](Views& v) { v[1].dtype = DType::i32; }), ContainsSubstring("is F32"));
  CHECK_THAT(with_views([](Views& v) {
               v[0].shape = {3, 4}, v[0].end = 3;
             }),
             ContainsSubstring("[4, 3], this run expects F32 [3, 4]"));
}

}  // namespace
}  // namespace hearth::test
