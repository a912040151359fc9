// A small run with a state registry of its own, saved and looked for in a temporary directory.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "state/state_save.h"
#include "state/state_search.h"
#include "support/temporary_directory.h"

namespace hearth::test {

// A small run: weights and moments of fixed shape, a history that grows, a text cursor.
struct SavedRun {
  std::vector<float> embedding = std::vector<float>(12), head = std::vector<float>(5);
  std::vector<double> history;
  std::string cursor = "{\"epoch\": 0}";
  int restored = 0;
  StateRegistry registry;

  explicit SavedRun(float seed = 1) {
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

inline const Json kExtra = JsonObject{{"seed", 7}};

inline std::vector<std::string> states(const TemporaryDirectory& run) {
  return file_info(run / "state").kind == FileKind::none ? std::vector<std::string>{}
                                                         : list_directory(run / "state");
}

struct Found {
  std::optional<SavedState> state;
  std::vector<RejectedState> rejected;
};

inline Found find(const TemporaryDirectory& run) {
  Found found;
  found.state = find_newest_state(run.path(),
                                  [&](const RejectedState& bad) { found.rejected.push_back(bad); });
  return found;
}

inline std::string damage_of(const std::string& directory) {
  try {
    verify_state(directory);
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::storage);
    CHECK_THAT(e.what(), Catch::Matchers::ContainsSubstring(directory));
    return e.what();
  }
  return "";
}

inline void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace hearth::test
