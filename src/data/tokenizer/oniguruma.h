// Translates Oniguruma patterns of tokenizer.json for PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// The pattern in PCRE2's dialect (PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE). Input error that
/// starts with `where` (file and field) for syntax that the engines read differently and this
/// function does not rewrite. Examples: escapes such as \h, \v and \b, nested classes, `&&`.
/// Supported groups: (...), (?:...), (?i:...), (?i), lookaround and (?>...).
std::string from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace hearth
