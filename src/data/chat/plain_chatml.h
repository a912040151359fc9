#pragma once

#include <string_view>

namespace hearth {

/// Whether a Jinja template writes plain ChatML: for every message <|im_start|>ROLE\nCONTENT
/// <|im_end|>\n, then <|im_start|>assistant\n where a generation prompt is asked for, and nothing
/// else. Decided by what the template's tags do after Jinja's white space rules, not by spelling.
bool is_plain_chatml(std::string_view jinja);

}  // namespace hearth
