// A second opinion on JSON: the grammar of RFC 8259 with this program's limits, by slow code that
// shares nothing with the reader under test.
#pragma once

#include <string_view>

namespace hearth::test {

/// Whether parse_json (base/json.h) has to accept the text.
bool is_json(std::string_view text);

}  // namespace hearth::test
