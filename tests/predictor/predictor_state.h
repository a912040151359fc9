// The registered state of a predictor as bytes, and its way into another predictor.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "predictor/predictor.h"

namespace hearth::test {

using StateBytes = std::map<std::string, std::vector<std::byte>>;  // by "component/view"

inline StateBytes saved(Predictor& predictor) {
  StateRegistry registry;
  predictor.register_state(registry);
  StateBytes all;
  for (const StateComponent& c : registry.components()) {
    for (const StateView& view : c.views()) {
      all[c.name + "/" + view.name].assign(view.bytes.begin(), view.bytes.end());
    }
  }
  return all;
}

/// Views that are not in `from` stay as they are.
inline void load(Predictor& predictor, const StateBytes& from) {
  StateRegistry registry;
  predictor.register_state(registry);
  for (const StateComponent& c : registry.components()) {
    for (const StateView& view : c.views()) {
      const auto found = from.find(c.name + "/" + view.name);
      if (found == from.end()) continue;
      REQUIRE(found->second.size() == view.bytes.size());
      view.write(0, found->second);
    }
    if (c.restored) c.restored();
  }
}

}  // namespace hearth::test
