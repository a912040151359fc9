#include "data/chat/template_args.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error_format.h"
#include "base/numbers.h"

namespace hearth {
namespace {

bool is_variable(const std::string& name) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_word);
}

/// What the chat sets itself, and words of the template language.
bool is_taken(const std::string& name) {
  constexpr std::array<std::string_view, 14> kTaken{
      "messages", "tools", "documents", "add_generation_prompt",
      "loop",     "true",  "false",     "none",
      "True",     "False", "None",      "and",
      "or",       "not"};
  return std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
}

Json value_of(const std::string& text) {
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "true" || lower == "false") return lower == "true";
  if (const auto count = parse_count(text)) return *count;
  if (const auto number = parse_number(text)) return *number;
  if (text.starts_with('"')) {
    try {
      const Json quoted_text = parse_json(text, "a value");
      if (quoted_text.is_string()) return quoted_text;
    } catch (const Error&) {  // then it is a text that begins with a quote
    }
  }
  return text;
}

}  // namespace

Json template_args(const std::vector<std::string>& texts) {
  Json args = JsonObject{};
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string where = quoted(text);
    if (equals == std::string::npos || !is_variable(name)) {
      throw usage_error("{}: expected NAME=VALUE, such as enable_thinking=false", where);
    }
    if (is_taken(name)) {
      throw usage_error("{}: {} is set by the chat or by the template language", where,
                        quoted(name));
    }
    if (args.find(name) != nullptr) throw usage_error("{}: {} is given twice", where, quoted(name));
    args[name] = value_of(text.substr(equals + 1));
  }
  return args;
}

std::string with_defaults(const std::string& source, const Json& args) {
  std::string text;
  for (const auto& [name, value] : args.as_object()) {
    // Templates are rendered with trim_blocks, which takes the line break after a tag.
    text += "{% set " + name + " = " + name + " | default(" + value.dump() + ") %}\n";
  }
  return text + source;
}

}  // namespace hearth
