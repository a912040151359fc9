// The memory that a save takes, against what the plan sets aside for it.
#include <catch2/catch_test_macros.hpp>

#include "support/counted_memory.h"
#include "train/state_fixture.h"

namespace hearth::test {
namespace {

TEST_CASE("save: names and digests take what is planned for them") {
  for (const int experts : {20, 400}) {
    std::vector<float> weight(4);
    std::vector<std::string> names;
    uint64_t planned = 0;
    for (int e = 0; e < experts; ++e) {
      for (const char* part : {"gate", "up", "down"}) {
        names.push_back("model.layers.17.mlp.experts." + std::to_string(e) + "." + part +
                        "_proj.weight");
        planned += save_memory_bytes(names.back().size(), 3);
      }
    }
    StateRegistry registry;
    for (const char* name : {"weights", "moment1", "moment2"}) {
      StateComponent component;
      component.name = name;
      component.views = [&] {
        std::vector<StateView> views;
        for (const std::string& n : names) {
          views.push_back(SavedRun::view(n, DType::f32, {2, 2}, weight));
        }
        return views;
      };
      registry.add(component);
    }
    const TemporaryDirectory out;
    start_counting();
    save_state(registry, out.path(), 1, 1, kExtra);
    const int64_t peak = counted_peak();
    INFO(names.size() << " tensors, peak " << peak << ", planned " << planned);
    const auto most = static_cast<int64_t>(planned);
    // Vectors that grow by doubling have room that is never touched, and no memory.
    CHECK(peak <= most + most / 3 + (64 << 10));
    CHECK(peak >= most - most / 8);
  }
}

}  // namespace
}  // namespace hearth::test
