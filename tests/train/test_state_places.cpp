// Saved state of parameters that live where the host does not reach: digests, saves and loads have the
// bytes of a run on the host alone, and no address of such memory is touched.
#include <catch2/catch_test_macros.hpp>

#include "model/parameter_access.h"
#include "model/place_fixture.h"
#include "state/background_save.h"
#include "state/parameter_state.h"
#include "state/state_load.h"
#include "support/temporary_directory.h"
#include "verdict/weight_change.h"

namespace hearth::test {
namespace {

/// A table with values of its own in every copy that a state holds.
struct PlacedState {
  PlacedTable placed;
  StateRegistry registry;

  PlacedState(const Checkpoint& base, Away away, float first)
      : placed(trained(base.make_table()), kRounded, away) {
    std::vector<std::byte> staging;
    for (const CopyRole role : {CopyRole::master, CopyRole::moment1, CopyRole::moment2}) {
      for (Tensor& t : placed.table.tensors()) {
        std::vector<float> values(static_cast<size_t>(t.size()));
        for (float& value : values) value = first += 0.37f;
        const View copy = t.copies[static_cast<int>(role)].view;
        put_elements(placed.table, t, copy, 0, DType::f32, values.data(), t.size(), staging);
      }
    }
    refresh_working_copies(placed.table);
    register_parameters(registry, placed.table);
  }
};

void require_same_copies(const PlacedTable& a, const PlacedTable& b) {
  for (const CopyRole role :
       {CopyRole::master, CopyRole::working, CopyRole::moment1, CopyRole::moment2}) {
    const bool same = a.bytes(role) == b.bytes(role);
    CHECK(same);
  }
}

struct Places {
  TemporaryDirectory dir;
  std::optional<Checkpoint> base;
  Places() {
    // A tensor of more than one piece of a state.
    make_checkpoint(changed(small_config(), "vocab_size", 200'000), dir / "model");
    base.emplace(dir / "model");
  }
};

TEST_CASE("state places: digests, saves and loads are those of the host", "[places]") {
  const Places p;
  PlacedState host(*p.base, Away::nothing, 1);
  const SavedState saved = save_state(host.registry, p.dir / "host", 5, 1, JsonObject{});
  const Pool pool(2);
  int n = 0;
  for (const Away away : {Away::experts, Away::everything}) {
    PlacedState placed(*p.base, away, 1);
    CHECK(state_digest(placed.registry) == state_digest(host.registry));
    CHECK(state_digest(placed.registry, &pool) == saved.digest);
    const std::string run = p.dir / ("out" + std::to_string(n++));
    BackgroundSave save;
    save.begin(std::make_unique<StateSave>(placed.registry,
                                           SaveRequest{run, 5, {1}, JsonObject{}, {}}, &pool));
    const auto outcome = save.end(true);
    REQUIRE(outcome);
    CHECK(outcome->failure.empty());
    const std::string state = run + "/state/" + state_directory_name(5);
    CHECK(verify_state(state).digest == saved.digest);
    for (const char* file : {"/weights.safetensors", "/moment1.safetensors", "/moment2.safetensors",
                             "/manifest.json"}) {
      const bool same = read_text(state + file) == read_text(saved.directory + file);
      CHECK(same);
    }
    // A state of the host is loaded there, and the other way round.
    PlacedState other(*p.base, away, -3);
    load_state(other.registry, saved);
    require_same_copies(other.placed, host.placed);
    PlacedState back(*p.base, Away::nothing, -3);
    load_state(back.registry, open_state(state));
    require_same_copies(back.placed, host.placed);
  }
}

TEST_CASE("state places: a weight that is not finite is named", "[places]") {
  const Places p;
  PlacedState placed(*p.base, Away::everything, 1);
  ParameterTable& table = placed.placed.table;
  // Behind the first piece.
  Tensor& tensor = table.tensor(0);
  const float bad = std::numeric_limits<float>::infinity();
  std::vector<std::byte> staging;
  put_elements(table, tensor, View{tensor.home().view}, 1'100'003, DType::f32, &bad, 1, staging);
  const std::string message = error_of(
      [&] { save_state(placed.registry, p.dir / "run", 1, 1, JsonObject{}); }, ExitCode::numeric);
  CHECK(message.find("element 1100003 is not finite") != std::string::npos);
}

TEST_CASE("state places: what is frozen and how far the rest moved", "[places]") {
  const Places p;
  const Pool pool(2);
  const auto facts = [&](Away away) {
    ParameterTable half = p.base->make_table();
    for (TensorId id = 0; id < std::ssize(half.tensors()); id += 2)
      half.tensor(id).trainable = true;
    PlacedTable placed(std::move(half), kTraining, away);
    p.base->read_weights(placed.table, pool);
    std::vector<std::byte> staging;
    for (Tensor& t : placed.table.tensors()) {
      const View start = t.copies[static_cast<int>(CopyRole::gradient)].view;
      const View moment = t.copies[static_cast<int>(CopyRole::moment1)].view;
      if (!start) continue;
      const std::vector<float> values(static_cast<size_t>(t.size()), 0.25f);
      put_elements(placed.table, t, start, 0, DType::f32, values.data(), t.size(), staging);
      // In the last element alone.
      put_elements(placed.table, t, moment, t.size() - 1, DType::f32, values.data(), 1, staging);
    }
    GradientRecord record(placed.table, p.base->spec());
    const size_t layers = static_cast<size_t>(p.base->spec().layers);
    const auto experts = static_cast<size_t>(p.base->spec().experts);
    record.look(placed.table, std::vector(layers, std::vector<double>(experts, 1.0)));
    return std::pair(frozen_content(placed.table, pool),
                     tensor_changes(placed.table, record, pool));
  };
  const auto [frozen, changes] = facts(Away::nothing);
  CHECK(frozen.tensors > 5);
  for (const Away away : {Away::experts, Away::everything}) {
    const auto [there, moved] = facts(away);
    CHECK(there.root == frozen.root);
    REQUIRE(moved.size() == changes.size());
    for (size_t i = 0; i < moved.size(); ++i) {
      CHECK(moved[i].start_square == changes[i].start_square);
      CHECK(moved[i].update_square == changes[i].update_square);
      CHECK(moved[i].moved);
    }
  }
}

}  // namespace
}  // namespace hearth::test
