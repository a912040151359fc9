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
    size_t name_bytes = 0;
    for (int e = 0; e < experts; ++e) {
      for (const char* part : {"gate", "up", "down"}) {
        names.push_back("model.layers.17.mlp.experts." + std::to_string(e) + "." + part +
                        "_proj.weight");
        name_bytes += 3 * names.back().size();
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
    const auto planned = static_cast<int64_t>(save_memory_bytes(3 * names.size(), name_bytes));
    INFO(names.size() << " tensors, peak " << peak << ", planned " << planned);
    CHECK(peak <= planned + (64 << 10));
    CHECK(3 * peak >= planned);
  }
}

}  // namespace
}  // namespace hearth::test
