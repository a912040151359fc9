// Saved state against every damage and every failing call that a tiny one can meet.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

#include "base/file_ops.h"
#include "support/failing_calls.h"
#include "support/recording_calls.h"
#include "support/temporary_directory.h"
#include "train/saved_state.h"

using namespace hearth;
using Catch::Matchers::ContainsSubstring;
using hearth::test::FailingCalls;
using hearth::test::RecordingCalls;
using hearth::test::TemporaryDirectory;

namespace {

// A small run: weights and moments of fixed shape, a history that grows, a text cursor.
struct Run {
  std::vector<float> embedding = std::vector<float>(12), head = std::vector<float>(5);
  std::vector<double> history;
  std::string cursor = "{\"epoch\": 0}";
  int restored = 0;
  StateRegistry registry;

  explicit Run(float seed = 1) {
    std::iota(embedding.begin(), embedding.end(), seed);
    std::iota(head.begin(), head.end(), -seed);
    history = {0.5 * seed};
    StateComponent weights;
    weights.name = "weights";
    weights.views = [this] {
      return std::vector<StateView>{view("model.embed", DType::f32, {4, 3}, embedding),
                                    view("head", DType::f32, {5}, head),
                                    view("empty", DType::bf16, {0, 3}, none_)};
    };
    weights.restored = [this] { ++restored; };
    registry.add(weights);
    StateComponent grown;
    grown.name = "history";
    grown.views = [this] {
      return std::vector<StateView>{
          view("loss", DType::f64, {static_cast<int64_t>(history.size())}, history)};
    };
    grown.prepare = [this](std::string_view, uint64_t bytes) { history.resize(bytes / 8); };
    registry.add(grown);
    registry.add_text(
        "cursor", [this] { return cursor; }, [this](const std::string& text) { cursor = text; });
  }

  template <class T>
  static StateView view(std::string name, DType type, std::vector<int64_t> shape,
                        std::vector<T>& data) {
    const int64_t rows = shape[0];
    return {
        std::move(name), type, std::move(shape), 0, rows, std::as_writable_bytes(std::span(data))};
  }

 private:
  std::vector<uint16_t> none_;
};

const Json kExtra = JsonObject{{"seed", 7}};

std::vector<std::string> states(const TemporaryDirectory& run) {
  return file_info(run / "state").kind == FileKind::none ? std::vector<std::string>{}
                                                         : list_directory(run / "state");
}

struct Found {
  std::optional<SavedState> state;
  std::vector<RejectedState> rejected;
};

Found find(const TemporaryDirectory& run) {
  Found found;
  found.state = find_newest_state(run.path(),
                                  [&](const RejectedState& bad) { found.rejected.push_back(bad); });
  return found;
}

std::string damage_of(const std::string& directory) {
  try {
    verify_state(directory);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::storage);
    CHECK_THAT(e.what(), ContainsSubstring(directory));
    return e.what();
  }
  return "";
}

void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace

TEST_CASE("what was saved comes back, with the digest of the memory") {
  const TemporaryDirectory out;
  Run run(3);
  run.history = {1, 2, 3};
  run.cursor = "";
  const StateDigest live = state_digest(run.registry);
  const SavedState saved = save_state(run.registry, out.path(), 100, 2, kExtra);
  CHECK(saved.directory == out / "state/step-00000100");
  CHECK(list_directory(saved.directory) ==
        std::vector<std::string>{"cursor.safetensors", "history.safetensors", "manifest.json",
                                 "weights.safetensors"});
  CHECK(saved.digest == live);
  CHECK(verify_state(saved.directory).digest == live);
  CHECK(verify_state(saved.directory + "/").extra.dump() == kExtra.dump());
  CHECK(live.tensors.size() == 5);
  CHECK(live.tensors[0].name == "cursor/text");
  CHECK(live.components.size() == 3);

  Run other(9);
  CHECK_FALSE(state_digest(other.registry).root == live.root);
  const Found found = find(out);
  REQUIRE(found.state);
  CHECK(found.state->step == 100);
  CHECK(found.rejected.empty());
  load_state(other.registry, *found.state);
  CHECK(other.embedding == run.embedding);
  CHECK(other.head == run.head);
  CHECK(other.history == run.history);
  CHECK(other.cursor == run.cursor);
  CHECK(other.restored == 1);
  CHECK(state_digest(other.registry) == live);

  uint64_t bytes = 0;
  for (const std::string& name : list_directory(saved.directory)) {
    bytes += file_info(saved.directory + "/" + name).size;
  }
  CHECK(state_bytes(run.registry) >= bytes);
}

TEST_CASE("the digest is of content, and of all of it") {
  Run run;
  const StateDigest before = state_digest(run.registry);
  run.head[4] += 1;
  const StateDigest after = state_digest(run.registry);
  CHECK_FALSE(after.root == before.root);
  int changed = 0;
  for (size_t i = 0; i < before.tensors.size(); ++i) {
    if (!(before.tensors[i] == after.tensors[i])) {
      ++changed;
      CHECK(after.tensors[i].name == "weights/head");
    }
  }
  CHECK(changed == 1);

  // The same bytes under another shape or type are another state.
  const auto root = [](DType type, std::vector<int64_t> shape) {
    std::vector<std::byte> data(16);
    StateRegistry registry;
    StateComponent c;
    c.name = "c";
    c.views = [&] {
      return std::vector<StateView>{{"t", type, shape, 0, shape[0], std::span(data)}};
    };
    registry.add(c);
    return state_digest(registry).root;
  };
  CHECK_FALSE(root(DType::f32, {4}) == root(DType::i32, {4}));
  CHECK_FALSE(root(DType::f32, {4}) == root(DType::f32, {2, 2}));

  // The same content elsewhere, at another step, with other extras: the same digest.
  const TemporaryDirectory a, b;
  Run one;
  const SavedState first = save_state(one.registry, a.path(), 1, 2, kExtra);
  const SavedState second = save_state(one.registry, b.path(), 77, 2, JsonObject{});
  CHECK(first.digest == second.digest);
  CHECK(verify_state(second.directory).digest == first.digest);
}

TEST_CASE("every flipped byte and every truncation is noticed") {
  const TemporaryDirectory out;
  const Run run;
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

TEST_CASE("damage to a large file is placed") {
  const TemporaryDirectory out;
  std::vector<int32_t> data((size_t{65} << 20) / 4, 7);
  StateRegistry registry;
  StateComponent large;
  large.name = "large";
  large.views = [&] {
    return std::vector<StateView>{
        Run::view("t", DType::i32, {static_cast<int64_t>(data.size())}, data)};
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
}

TEST_CASE("files and directories in the wrong place are noticed") {
  const TemporaryDirectory out, other;
  const Run run(1), later(2);
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
  CHECK_THAT(damage_of(other / "missing"), ContainsSubstring("no directory"));
}

TEST_CASE("the newest whole state wins, older ones step in") {
  const TemporaryDirectory out;
  CHECK_FALSE(find(out).state);
  Run run;
  for (int64_t step = 1; step <= 3; ++step) {
    run.history.push_back(static_cast<double>(step));
    save_state(run.registry, out.path(), step, 5, kExtra);
  }
  CHECK(find(out).state->step == 3);
  const std::string bad = out / "state/step-00000003/history.safetensors";
  std::string content = read_file(bad);
  content.back() ^= 1;
  overwrite(bad, content);
  remove_file(out / "state/step-00000002/manifest.json");
  make_directory(out / "state/.tmp-step-00000004");
  make_directory(out / "state/step-4");
  make_directory(out / "state/step-000000005");

  const Found found = find(out);
  REQUIRE(found.state);
  CHECK(found.state->step == 1);
  REQUIRE(found.rejected.size() == 2);
  CHECK(found.rejected[0].directory == out / "state/step-00000003");
  CHECK(found.rejected[0].file == "history.safetensors");
  CHECK_THAT(found.rejected[0].reason, ContainsSubstring("damaged between bytes 0 and"));
  CHECK(found.rejected[1].file == "manifest.json");

  // Going on: the rejected ones make room, and stay until two newer states exist.
  set_aside(found.rejected);
  save_state(run.registry, out.path(), 2, 2, kExtra);
  remove_leftovers(out.path());
  CHECK(states(out) == std::vector<std::string>{".bad-step-00000002", ".bad-step-00000003",
                                                "step-000000005", "step-00000001", "step-00000002",
                                                "step-4"});
  save_state(run.registry, out.path(), 3, 2, kExtra);
  CHECK(file_info(out / "state/.bad-step-00000002").kind == FileKind::none);
  CHECK(file_info(out / "state/.bad-step-00000003").kind == FileKind::directory);
  save_state(run.registry, out.path(), 4, 1, kExtra);
  CHECK(file_info(out / "state/.bad-step-00000003").kind == FileKind::none);
}

TEST_CASE("states without a whole one are an error, never a fresh start") {
  const TemporaryDirectory out;
  const Run run;
  const SavedState saved = save_state(run.registry, out.path(), 5, 2, kExtra);
  overwrite(saved.directory + "/manifest.json", "{}");
  for (int round = 0; round < 2; ++round) {
    try {
      find(out);
      FAIL("not raised");
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::storage);
      CHECK_THAT(e.what(), ContainsSubstring("none of it is whole"));
    }
    std::filesystem::rename(saved.directory, out / "state/.bad-step-00000005");
    if (round == 1) break;
    CHECK_THROWS_AS(find(out), Error);
    std::filesystem::rename(out / "state/.bad-step-00000005", saved.directory);
  }
}

TEST_CASE("exactly the newest are kept") {
  const TemporaryDirectory out;
  const Run run;
  for (int64_t step = 10; step <= 50; step += 10) {
    save_state(run.registry, out.path(), step, 2, kExtra);
  }
  CHECK(states(out) == std::vector<std::string>{"step-00000040", "step-00000050"});
  save_state(run.registry, out.path(), 123456789, 1, kExtra);
  CHECK(states(out) == std::vector<std::string>{"step-123456789"});
  CHECK(find(out).state->step == 123456789);
  CHECK_THROWS_AS(save_state(run.registry, out.path(), 123456789, 1, kExtra), Error);
  CHECK(damage_of(out / "state/step-123456789").empty());
}

TEST_CASE("a save that fails at any call leaves the older states whole and nothing behind") {
  FailingCalls quick;
  const FileCallsOverride no_syncs(quick);
  for (const int error : {EIO, ENOSPC}) {
    for (const bool persistent : {false, true}) {
      for (int n = 1;; ++n) {
        INFO("call " << n << " fails, and all after it: " << persistent);
        const TemporaryDirectory out;
        Run run(1);
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
  const Run run;
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
  const int64_t durable = calls.last("sync " + (out / "state"));
  CHECK(durable > commit);
  // The older state goes after that.
  CHECK(calls.last("rename " + (out / "state/step-00000001") + " " +
                   (out / "state/.trash-step-00000001")) > durable);
}

TEST_CASE("interrupts and short writes change nothing in a state") {
  const TemporaryDirectory out;
  const Run run;
  FailingCalls calls;
  calls.piece = 13;
  calls.interrupts = true;
  const FileCallsOverride guard(calls);
  const SavedState saved = save_state(run.registry, out.path(), 1, 2, kExtra);
  CHECK(verify_state(saved.directory).digest == state_digest(run.registry));
}

TEST_CASE("a failing read passes a state over") {
  const TemporaryDirectory out;
  const Run run;
  save_state(run.registry, out.path(), 1, 2, kExtra);
  save_state(run.registry, out.path(), 2, 2, kExtra);
  FailingCalls calls;
  calls.fail_at = 2;  // the read of the newest manifest
  const FileCallsOverride guard(calls);
  const Found found = find(out);
  REQUIRE(found.rejected.size() == 1);
  CHECK_THAT(found.rejected[0].reason, ContainsSubstring("cannot read"));
  CHECK(found.state->step == 1);
}

TEST_CASE("a dropped or new component, view, type or shape is noticed before anything is used") {
  const TemporaryDirectory out;
  const Run run;
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
    Run other;
    StateRegistry fewer;
    for (size_t i = 0; i < 3; ++i) {
      if (i != dropped) fewer.add(other.registry.components()[i]);
    }
    CHECK_THAT(refusal(fewer), ContainsSubstring("of a component that this run has not"));
    CHECK(other.restored == 0);
  }
  Run more;
  more.registry.add_text(
      "extra", [] { return ""; }, [](const std::string&) {});
  CHECK_THAT(refusal(more.registry), ContainsSubstring("has no component 'extra'"));

  const auto with_views = [&](auto change) {
    Run other;
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
             ContainsSubstring("no tensor 'tail'"));
  CHECK_THAT(with_views([](Views& v) { v[1].dtype = DType::i32; }), ContainsSubstring("is F32"));
  CHECK_THAT(with_views([](Views& v) {
               v[0].shape = {3, 4}, v[0].end = 3;
             }),
             ContainsSubstring("[4, 3], this run has F32 [3, 4]"));
}

TEST_CASE("memory that changes during a save is a bug that shows") {
  const TemporaryDirectory out;
  Run run;
  struct Changing : FileCalls {
    Run* run;
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
