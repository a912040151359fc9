// The tags and texts of a Jinja template, after its white space rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// A literal text, the inside of {% %} or the inside of {{ }}.
struct JinjaToken {
  enum class Kind { text, statement, expression };
  Kind kind = Kind::text;
  std::string content;  // of tags: without the white space around it
};

/// Cuts a template as transformers sets Jinja up: trim_blocks and lstrip_blocks on, one newline at
/// the end of the template dropped; "-" and "+" in tags as Jinja has them. Comments are left out.
/// nullopt: a tag does not end.
std::optional<std::vector<JinjaToken>> cut_jinja(std::string_view source);

}  // namespace hearth
