// Patterns of tokenizer.json are written for Oniguruma; here is what PCRE2 reads the same way.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// The pattern in PCRE2's dialect (PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE). `where` (file and field)
/// starts the messages: input error for what the two engines would read in different ways and is not
/// rewritten here: escapes such as \h, \v and \b, nested classes, `&&`, groups other than (...),
/// (?:...), (?i:...), (?i), lookaround and (?>...).
std::string from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace hearth
