// Which tensors had a gradient: looked at after each step, kept in saved state.
#include "verdict/gradient_record.h"

#include <catch2/catch_test_macros.hpp>

#include "model/family.h"
#include "model/parameter_access.h"
#include "model/place_fixture.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

/// A table whose tensors are all trained, with moments that are 0.
struct Trained {
  ModelSpec spec;
  PlacedTable placed;
  std::vector<std::vector<double>> tokens;  // one token for each expert

  explicit Trained(Away away)
      : spec(read_config(small_config())),
        placed(trained(family_of(small_config(), "config.json").make_table(spec)), kTraining,
               away) {
    for (const bool moe : spec.moe) {
      if (moe) tokens.emplace_back(static_cast<size_t>(spec.experts), 1.0);
    }
    for (TensorId id = 0; id < std::ssize(placed.table.tensors()); ++id) set_moments(id, 0);
  }
  GradientRecord record() const { return {placed.table, spec}; }
  /// All elements.
  void set_moments(TensorId id, float value) {
    std::vector<std::byte> staging;
    const Tensor& t = placed.table.tensor(id);
    const std::vector<float> values(static_cast<size_t>(t.size()), value);
    put_elements(placed.table, t, placed.table.view(id, CopyRole::moment1), 0, DType::f32,
                 values.data(), t.size(), staging);
  }
  /// The last element alone.
  void set_moment(TensorId id, float value) {
    std::vector<std::byte> staging;
    const Tensor& t = placed.table.tensor(id);
    put_elements(placed.table, t, placed.table.view(id, CopyRole::moment1), t.size() - 1,
                 DType::f32, &value, 1, staging);
  }
  TensorId of_expert(int32_t number) const {
    for (TensorId id = 0; id < std::ssize(placed.table.tensors()); ++id) {
      const Block& block = placed.table.block(placed.table.tensor(id).block);
      if (block.kind == BlockKind::expert && block.expert == number) return id;
    }
    return -1;
  }
};

TEST_CASE("gradients: what one step showed is known when the moment is 0 again") {
  for (const Away away : {Away::nothing, Away::everything}) {
    Trained t(away);
    GradientRecord record = t.record();
    record.look(t.placed.table, t.tokens);
    const auto count = std::ssize(t.placed.table.tensors());
    for (TensorId id = 0; id < count; ++id) CHECK_FALSE(record.had_gradient(id));
    t.set_moment(3, 1e-30f);
    record.look(t.placed.table, t.tokens);
    t.set_moment(3, 0);
    record.look(t.placed.table, t.tokens);
    for (TensorId id = 0; id < count; ++id) CHECK(record.had_gradient(id) == (id == 3));
  }
}

TEST_CASE("gradients: an expert is looked at in steps that gave it a token") {
  Trained t(Away::nothing);
  GradientRecord record = t.record();
  const TensorId tensor = t.of_expert(1);
  REQUIRE(tensor > 0);
  t.set_moment(tensor, 0.5f);
  for (auto& layer : t.tokens) layer[1] = 0;
  record.look(t.placed.table, t.tokens);
  CHECK_FALSE(record.had_gradient(tensor));
  for (auto& layer : t.tokens) layer[1] = 1;
  record.look(t.placed.table, t.tokens);
  CHECK(record.had_gradient(tensor));
}

TEST_CASE("gradients: saved and restored, and counted as all where no state tells") {
  Trained t(Away::nothing);
  const auto count = std::ssize(t.placed.table.tensors());
  GradientRecord record = t.record(), same = t.record(), older = t.record();
  for (const TensorId id : {0, 5, 6}) t.set_moment(id, 1);
  record.look(t.placed.table, t.tokens);
  const Json saved = record.to_json();
  CHECK(saved.as_string().starts_with("16"));  // bits 0; 1 and 2 of the second digit
  CHECK(std::ssize(saved.as_string()) == (count + 3) / 4);
  same.restore(&saved, "manifest.json");
  CHECK(same.to_json().dump() == saved.dump());
  t.set_moment(9, 1);
  same.look(t.placed.table, t.tokens);
  for (TensorId id = 0; id < count; ++id) {
    CHECK(same.had_gradient(id) == (id == 0 || id == 5 || id == 6 || id == 9));
  }
  older.restore(nullptr, "manifest.json");
  for (TensorId id = 0; id < count; ++id) CHECK(older.had_gradient(id));
  for (const Json& bad : {Json(7), Json(""), Json("1"), Json(nullptr),
                          Json(std::string(saved.as_string().size(), 'g')),
                          Json(std::string(saved.as_string().size(), 'F')),
                          Json(std::string(saved.as_string().size(), '\0'))}) {
    const Raised raised = raised_by([&] { older.restore(&bad, "manifest.json"); });
    CHECK(raised.code == ExitCode::storage);
    CHECK(raised.says("manifest.json: gradients: expected"));
  }
}

}  // namespace
}  // namespace hearth::test
