// Any index text is refused with an input error, or names plain files ending in .safetensors.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "checkpoint/weight_index.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return hearth::test::mutate_input(data, size, most, seed, hearth::test::mutate_json);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    hearth::WeightMap map;
    {
      const hearth::test::Bounded bound(size, {.times = 64});
      map = hearth::parse_weight_index(text, "fuzz");
    }
    std::set<std::string> tensors;
    for (const auto& [tensor, file] : map) {
      const bool fine = tensors.insert(tensor).second && file.ends_with(".safetensors") &&
                        file.find('/') == std::string::npos &&
                        file.find('\0') == std::string::npos && file[0] != '.';
      if (!fine) std::abort();
    }
    if (hearth::parse_weight_index(hearth::weight_index_text(map, 1, 4), "again").size() !=
        map.size()) {
      std::abort();
    }
  } catch (const hearth::Error& error) {
    if (error.code() != hearth::ExitCode::input) std::abort();
  }
  return 0;
}
