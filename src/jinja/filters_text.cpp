// Filters that give texts.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/format.h"
#include "jinja/meter.h"
#include "jinja/methods.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/split.h"
#include "jinja/unicode.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

// A text as soft_str makes it: one that is marked safe stays so.
Value like(const Value& input, std::string text) {
  const bool safe = input.is_string() && input.as_string().safe;
  return safe ? Value::safe(std::move(text)) : Value(std::move(text));
}

template <std::string (*map)(std::string_view)>
Value filter_map_text(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("a filter of texts", arguments, {});
  const std::string text = to_text(input);
  charge_values(text.size());
  return like(input, map(text));
}

// Jinja's own title: words begin behind white space and - ( { [ <.
std::string title_words(std::string_view text) {
  std::string out;
  size_t at = 0;
  const auto is_break = [](uint32_t code) {
    return is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' ||
           code == '<';
  };
  while (at < text.size()) {
    size_t end = at;
    bool breaks = false;
    while (end < text.size()) {
      const std::string_view c = first_character(text.substr(end));
      const bool is = is_break(codes_of(c)[0]);
      if (end == at) breaks = is;
      if (is != breaks) break;
      end += c.size();
    }
    const std::string_view part = text.substr(at, end - at);
    const std::string_view first = first_character(part);
    out += to_upper(first) + to_lower(part.substr(first.size()));
    at = end;
  }
  return out;
}

Value filter_string(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("string", arguments, {});
  return input.is_string() ? input : Value(to_text(input));
}

Value filter_safe(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("safe", arguments, {});
  return Value::safe(to_text(input));
}

Value filter_escape(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("escape", arguments, {});
  if (input.is_string() && input.as_string().safe) return input;
  return Value::safe(escaped(to_text(input)));
}

Value filter_forceescape(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("forceescape", arguments, {});
  return Value::safe(escaped(to_text(input)));
}

Value filter_trim(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("trim", arguments, {"chars"});
  Arguments chars;
  if (is_given(bound[0])) chars.positional.push_back(*bound[0]);
  const Value text = to_text(input);
  return like(input, find_method(text, "strip")(e, text, chars).bytes());
}

Value filter_replace(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("replace", arguments, {"old", "new", "count"}, 2);
  Arguments plain;
  plain.positional = {Value(to_text(*bound[0])), Value(to_text(*bound[1]))};
  if (is_given(bound[2])) plain.positional.push_back(*bound[2]);
  const Value text = to_text(input);
  return find_method(text, "replace")(e, text, plain);
}

Value filter_join(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("join", arguments, {"d", "attribute"});
  const std::string separator = bound[0] != nullptr ? to_text(*bound[0]) : "";
  std::string text;
  bool first = true;
  for (const Value& each : iterate(input)) {
    if (!std::exchange(first, false)) text += separator;
    text += to_text(attribute_path(e, each, bound[1]));
    check_growing(text.size());
    charge_bytes(separator.size());
  }
  charge_bytes(text.size());
  return text;
}

Value filter_center(Evaluator& e, const Value& input, const Arguments& arguments) {
  const auto bound = bind("center", arguments, {"width"});
  const Value text = to_text(input);
  return like(input, find_method(text, "center")(e, text, {{value_or(bound[0], 80)}, {}}).bytes());
}

Value filter_indent(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("indent", arguments, {"width", "first", "blank"});
  const Value width = value_or(bound[0], 4);
  const bool first = truth_or(bound[1], false);
  const bool blank = truth_or(bound[2], false);
  const int64_t spaces = width.is_string() ? 0 : integer_of(width, "indent: width");
  if (spaces > 10'000) fail("indent: a width above 10000");
  const std::string indent =
      width.is_string() ? width.bytes()
                        : std::string(static_cast<size_t>(std::max<int64_t>(0, spaces)), ' ');
  const Values lines = split_lines(text_of(input, "indent") + "\n", false);
  charge_bytes(indent.size() * lines.size());
  std::string text = first ? indent : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\n";
    if (i > 0 && (blank || !lines[i].bytes().empty())) text += indent;
    text += lines[i].bytes();
    check_growing(text.size());
  }
  return like(input, std::move(text));
}

Value filter_wordcount(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("wordcount", arguments, {});
  int64_t words = 0;
  bool inside = false;
  const std::string text = to_text(input);
  charge_values(text.size());
  for (const uint32_t code : codes_of(text)) {
    words += is_word(code) && !inside ? 1 : 0;
    inside = is_word(code);
  }
  return words;
}

Value filter_format(Evaluator&, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    fail("format takes values with or without names, not both");
  }
  if (arguments.named.empty()) {
    return format_percent(to_text(input), Value::list(arguments.positional, ListKind::tuple));
  }
  auto named = std::make_shared<Dict>();
  for (const auto& [name, value] : arguments.named) named->set(name, value);
  return format_percent(to_text(input), Value(std::move(named)));
}

Value filter_truncate(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto bound = bind("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const int64_t length = bound[0] != nullptr ? integer_of(*bound[0], "truncate") : 255;
  const std::string end = bound[2] != nullptr ? text_of(*bound[2], "truncate") : "...";
  const int64_t leeway = is_given(bound[3]) ? integer_of(*bound[3], "truncate") : 5;
  const auto ending = static_cast<int64_t>(count_codes(end));
  if (length < ending || leeway < 0) fail("truncate: the length is below that of the end text");
  const std::string text = input.is_undefined() ? "" : text_of(input, "truncate");
  if (static_cast<int64_t>(count_codes(text)) <= length + leeway) return like(input, text);
  std::string head = text.substr(0, offset_of(text, static_cast<size_t>(length - ending)));
  if (!truth_or(bound[1], false)) {
    const size_t space = head.rfind(' ');
    if (space != std::string::npos) head.resize(space);
  }
  return like(input, head + end);
}

Value filter_urlencode(Evaluator&, const Value& input, const Arguments& arguments) {
  bind("urlencode", arguments, {});
  if (input.is_dict() || input.is_list()) fail("urlencode of a list is not supported");
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : to_text(input)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out.append("%").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  charge_bytes(out.size());
  return out;
}

constexpr NamedFilter kTexts[] = {
    {"upper", filter_map_text<to_upper>},
    {"lower", filter_map_text<to_lower>},
    {"capitalize", filter_map_text<capitalize>},
    {"title", filter_map_text<title_words>},
    {"string", filter_string},
    {"safe", filter_safe},
    {"escape", filter_escape},
    {"e", filter_escape},
    {"forceescape", filter_forceescape},
    {"trim", filter_trim},
    {"replace", filter_replace},
    {"join", filter_join},
    {"center", filter_center},
    {"indent", filter_indent},
    {"wordcount", filter_wordcount},
    {"format", filter_format},
    {"truncate", filter_truncate},
    {"urlencode", filter_urlencode},
};

}  // namespace

std::span<const NamedFilter> text_filters() { return kTexts; }

}  // namespace hearth::jinja
