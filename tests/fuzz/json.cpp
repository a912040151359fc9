// Any text is either refused with an input error or read to a value whose text reads back equal; which
// of the two, a second reader of the grammar tells.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "support/bounded.h"
#include "support/json_grammar.h"
#include "support/json_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return hearth::test::mutate_input(data, size, most, seed, hearth::test::mutate_json);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string once;
  bool accepted = false;
  try {
    const hearth::test::Bounded bound(size, {.times = 64});  // a value of 2 bytes is one of 40
    once = hearth::parse_json(text, "fuzz").dump();
    accepted = true;
  } catch (const hearth::Error& error) {
    if (error.code() != hearth::ExitCode::input) std::abort();
  }
  if (accepted != hearth::test::is_json(text)) std::abort();
  if (accepted && hearth::parse_json(once, "again").dump() != once) std::abort();
  return 0;
}
