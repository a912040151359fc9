#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "base/state_registry.h"

using namespace hearth;

TEST_CASE("a text component shows what it saves and gives back what was read") {
  StateRegistry registry;
  std::string live = "{\"step\": 7}", loaded;
  registry.add_text(
      "cursor", [&] { return live; }, [&](const std::string& t) { loaded = t; });
  const StateComponent& cursor = registry.components()[0];

  const StateView saved = cursor.views()[0];
  CHECK(saved.shape == std::vector<int64_t>{11});
  CHECK(saved.end == 11);
  CHECK(std::memcmp(saved.bytes.data(), live.data(), live.size()) == 0);
  live = "changed";
  CHECK(cursor.views()[0].bytes.size() == 7);

  cursor.prepare("text", 3);
  const std::vector<StateView> target = cursor.views();
  REQUIRE(target[0].bytes.size() == 3);
  std::memcpy(target[0].bytes.data(), "new", 3);
  cursor.restored();
  CHECK(loaded == "new");
  CHECK(cursor.views()[0].bytes.size() == 7);
}

TEST_CASE("component names are unique") {
  StateRegistry registry;
  const auto add = [&](std::string name) {
    registry.add_text(
        std::move(name), [] { return ""; }, [](const std::string&) {});
  };
  add("a");
  add("b");
  CHECK_THROWS_AS(add("a"), std::logic_error);
  CHECK_THROWS_AS(add(""), std::logic_error);
}
