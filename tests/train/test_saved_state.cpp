// Saved state: what comes back, which state is chosen, how many stay.
#include <filesystem>

#include "train/state_fixture.h"

namespace hearth::test {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("what was saved comes back, with the digest of the memory") {
  const TemporaryDirectory out;
  SavedRun run(3);
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

  SavedRun other(9);
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
}

TEST_CASE("the digest is of content, and of all of it") {
  SavedRun run;
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
  run.embedding[11] += 1;
  CHECK_FALSE(state_digest(run.registry).root == after.root);

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
  SavedRun one;
  const SavedState first = save_state(one.registry, a.path(), 1, 2, kExtra);
  const SavedState second = save_state(one.registry, b.path(), 77, 2, JsonObject{});
  CHECK(first.digest == second.digest);
  CHECK(verify_state(second.directory).digest == first.digest);
}

TEST_CASE("the newest whole state wins, older ones step in") {
  const TemporaryDirectory out;
  CHECK_FALSE(find(out).state);
  SavedRun run;
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
  const SavedRun run;
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
  const SavedRun run;
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

}  // namespace
}  // namespace hearth::test
