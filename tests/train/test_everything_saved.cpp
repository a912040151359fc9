// Everything that a run needs is in its state: a resume without one component or one counter of it is
// seen.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "budget/plan_time.h"
#include "data/samples/row_set.h"
#include "state/state_load.h"
#include "state/state_save.h"
#include "support/planted.h"
#include "train/lora_fixture.h"
#include "train/progress.h"

namespace hearth::test {
namespace {

Json progress_in(const std::string& state) {
  const std::string content = read_file(state + "/progress.safetensors");
  return parse_json(content.substr(content.rfind("{\"step\"")), "progress");
}

/// Components of a state, by their files.
std::vector<std::string> components_of(const std::string& state) {
  std::vector<std::string> names;
  for (const std::string& file : list_directory(state)) {
    if (file != "manifest.json") names.push_back(file.substr(0, file.rfind('.')));
  }
  return names;
}

/// Every component and counter of a state changes the end of a resume that goes without it.
void require_all_needed(TrainingFixture& f,
                        const std::function<TrainConfig(const std::string&)>& config) {
  const AssumedRates quick;
  REQUIRE(f.run(config("whole")) == ExitCode::done);
  REQUIRE(f.run_until(config("stopped"), 3) == ExitCode::stopped);
  const std::string state = f.dir / "stopped/state/step-00000003";
  int resumed = 0;
  // How a resume with a fault planted ends.
  const auto outcome = [&](const std::string& fault) {
    const std::string out = "resumed-" + std::to_string(++resumed);
    std::filesystem::copy(f.dir / "stopped", f.dir / out, std::filesystem::copy_options::recursive);
    const PlantedFault guard(fault);
    try {
      f.run(config(out));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return f.root(out) + f.result(out);
  };
  const std::string whole = f.root("whole") + f.result("whole");
  CHECK(outcome("none") == whole);
  const std::vector<std::string> components = components_of(state);
  CHECK(components.size() >= 4);
  for (const std::string& component : components) {
    INFO(component);
    CHECK(outcome("drop-" + component) != whole);
  }
  const Json progress = progress_in(state);
  REQUIRE(progress.find("epoch")->as_int() > 0);
  for (const auto& [key, value] : progress.as_object()) {
    INFO(key);
    if (value.as_int() != 0) CHECK(outcome("forget-" + key) != whole);
  }
  CHECK(outcome("off-by-one-cursor") != whole);
}

TEST_CASE("everything saved: a resume without a component or a counter ends otherwise") {
  TrainingFixture f;
  require_all_needed(f, [&](const std::string& out) {
    TrainConfig c = f.config(out);
    c.steps = 4;
    return c;
  });
}

TEST_CASE("everything saved: so does one of adapters with dropout") {
  LoraFixture f;
  require_all_needed(f, [&](const std::string& out) {
    TrainConfig c = f.lora(out);
    c.trainable = {"model.norm.weight"};
    c.steps = 4;
    return c;
  });
}

TEST_CASE("everything saved: no counter of progress is forgotten") {
  static_assert(sizeof(Progress) == 8 * sizeof(int64_t), "set the new counter below, too");
  TokenStore store;
  const std::vector<int32_t> ids = {1, 2, 3};
  for (int row = 0; row < 9; ++row) store.add(ids, ids);
  const RowSet rows(store);
  SamplerOptions options;
  options.seq_len = 8;
  Sampler sampler(rows, options);
  Progress saved{9, 6, 100, 50, 3, 2, {4, 1}};
  StateRegistry registry;
  register_progress(registry, saved, sampler);
  const TemporaryDirectory out;
  const SavedState state = save_state(registry, out.path(), 9, 1, JsonObject{});

  const auto is_back = [&](const std::string& fault) {
    const PlantedFault guard(fault);
    Progress loaded;
    Sampler other(rows, options);
    StateRegistry empty;
    register_progress(empty, loaded, other);
    try {
      load_state(empty, state);
    } catch (const Error&) {
      return false;
    }
    return state_digest(empty) == state.digest && other.cursor().epoch == 4 &&
           other.cursor().sequence == 1;
  };
  CHECK(is_back("none"));
  const Json progress = progress_in(state.directory);
  CHECK(progress.as_object().size() == 8);
  for (const auto& [key, value] : progress.as_object()) {
    INFO(key);
    CHECK(value.as_int() > 0);
    CHECK_FALSE(is_back("forget-" + key));
  }
}

}  // namespace
}  // namespace hearth::test
