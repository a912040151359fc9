// A small run with a state registry of its own, saved and looked for in a temporary directory.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "state/state_load.h"
#include "state/state_save.h"
#include "state/state_search.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"

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

inline bool has_python() { return std::system("python3 -c pass 2>/dev/null") == 0; }

/// What scripts/read_state prints of a state, errors included, after a line "0" (read) or "1".
inline std::string read_by_the_page(const std::string& state) {
  const std::string command =
      "python3 '" + test_data("/../../scripts/read_state") + "' '" + state + "' 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char piece[4096];
  for (size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) output.append(piece, n);
  return (::pclose(pipe) == 0 ? "0\n" : "1\n") + output;
}

inline void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace hearth::test
