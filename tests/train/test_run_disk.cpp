// What a run asks of the disk before it starts.
#include <catch2/catch_test_macros.hpp>

#include "train/run_disk.h"
#include "training_fixture.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("the disk must hold as many states as the run will have at once") {
  TrainingFixture f;
  TrainConfig config = f.config("run");
  const PlacedModel model = place_model(trained_model(open_model(config), config), {});
  const auto need = [&](Interval every, bool final_state, std::optional<int64_t> steps) {
    config.save_every = every;
    config.final_state = final_state;
    return disk_needed(model, config, steps);
  };
  config.keep = 2;
  const uint64_t result = need({}, false, 8);
  const uint64_t state = need({}, true, 8) - result;
  CHECK(state > 3 * sizeof(float) * static_cast<uint64_t>(trained_parameters(model.table)));
  CHECK(need({500, std::nullopt}, true, 8) == result + state);    // the last alone
  CHECK(need({500, std::nullopt}, false, 8) == result);           // none
  CHECK(need({8, std::nullopt}, true, 8) == result + state);      // the last is one of those
  CHECK(need({5, std::nullopt}, true, 8) == result + 2 * state);  // 5 and the last
  CHECK(need({5, std::nullopt}, false, 8) == result + state);     // 5
  CHECK(need({1, std::nullopt}, true, 8) == result + 3 * state);  // one more than are kept
  CHECK(need({std::nullopt, 60}, true, 8) == result + 3 * state);
  CHECK(need({500, std::nullopt}, true, std::nullopt) == result + 3 * state);  // not known

  // What is there already needs no place; a save may come all the same.
  make_directory(f.dir / "run");
  make_directory(f.dir / "run/state");
  make_directory(f.dir / "run/state/step-00000001");
  make_directory(f.dir / "run/state/step-00000002");
  CHECK(need({1, std::nullopt}, true, 8) == result + state);
  CHECK(need({500, std::nullopt}, true, 8) == result + state);
}
