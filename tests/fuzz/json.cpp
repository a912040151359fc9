// Any text is either refused with an input error or read to a value whose text reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string once = hearth::parse_json(text, "fuzz").dump();
    if (hearth::parse_json(once, "again").dump() != once) std::abort();
  } catch (const hearth::Error& error) {
    if (error.code() != hearth::ExitCode::input) std::abort();
  }
  return 0;
}
