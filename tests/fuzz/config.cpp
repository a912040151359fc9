// Any config.json is refused with an input error, or gives sizes whose products fit in 63 bits and
// a table of the promised number of tensors.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/family.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

__extension__ typedef unsigned __int128 Wide;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const hearth::Family& family, const hearth::ModelSpec& spec) {
  require(spec.hidden > 0 && spec.vocabulary > 0 && spec.layers > 0 && spec.heads > 0);
  require(spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0 && spec.head_dim % 2 == 0);
  require(spec.experts_per_token > 0 && spec.experts_per_token <= spec.experts);
  require(spec.norm_eps > 0 && spec.rope_theta > 0);
  require(static_cast<int64_t>(spec.moe.size()) == spec.layers);
  if (family.tensor_count(spec) > 10'000) return;  // slow, not wrong
  const hearth::ParameterTable table = family.make_table(spec);
  require(static_cast<int64_t>(table.tensors().size()) == family.tensor_count(spec));
  Wide total = 0;
  for (const auto& tensor : table.tensors()) {
    require(tensor.rows > 0 && tensor.cols > 0);
    total += static_cast<Wide>(tensor.rows) * static_cast<uint64_t>(tensor.cols);
  }
  require(total < uint64_t{1} << 51);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return hearth::test::mutate_input(data, size, most, seed, hearth::test::mutate_json);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const hearth::Family* family = nullptr;
    hearth::ModelSpec spec;
    {
      const hearth::test::Bounded bound(size, {.times = 64, .bytes = 4 << 20});
      const hearth::Json config = hearth::parse_json(text, "fuzz");
      family = &hearth::family_of(config, "fuzz");
      spec = family->read_config(config, "fuzz");
      hearth::config_dtype(config, "fuzz");
    }
    check(*family, spec);
  } catch (const hearth::Error& error) {
    require(error.code() == hearth::ExitCode::input);
  }
  return 0;
}
