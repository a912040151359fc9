// Any header text is refused with an input error, or every byte of the data belongs to exactly one
// tensor. The first byte of the input chooses how much data follows the header.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "model/safetensors.h"

namespace {

__extension__ typedef unsigned __int128 Wide;

void require(bool holds) {
  if (!holds) std::abort();
}

// The invariants again, by slow independent code.
void check(const hearth::SafetensorsHeader& header, uint64_t data) {
  std::set<std::string> names;
  std::vector<int> owners(data, 0);
  for (const auto& entry : header.entries) {
    require(names.insert(entry.name).second);
    require(entry.begin <= entry.end && entry.end <= data);
    Wide bits = static_cast<unsigned>(*hearth::safetensors_bits(entry.dtype));
    for (const int64_t size : entry.shape) {
      require(size >= 0);
      bits *= static_cast<uint64_t>(size);
      require(bits >> 64 == 0);
    }
    require(bits == static_cast<Wide>(entry.end - entry.begin) * 8);
    for (uint64_t i = entry.begin; i < entry.end; ++i) ++owners[i];
  }
  for (const int count : owners) require(count == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint64_t follows = size == 0 ? 0 : data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + (size > 0 ? 1 : 0),
                              size > 0 ? size - 1 : 0);
  try {
    check(hearth::parse_safetensors_header(text, 8 + text.size() + follows, "fuzz"), follows);
  } catch (const hearth::Error& error) {
    require(error.code() == hearth::ExitCode::input);
  }
  return 0;
}
