// A second JSON checker: the grammar of RFC 8259 with this program's limits, in slow code that
// shares nothing with the parser under test.
#pragma once

#include <string_view>

namespace hearth::test {

/// Whether parse_json (base/json.h) must accept the text.
bool is_json(std::string_view text);

}  // namespace hearth::test
