#include "jinja/string_methods.h"

#include <algorithm>

#include "base/error.h"
#include "jinja/format_braces.h"
#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/split.h"
#include "jinja/unicode.h"

namespace hearth::jinja {
namespace {

Value as_self(const Value& self, std::string text) {
  return self.as_string().safe ? Value::safe(std::move(text)) : Value(std::move(text));
}

bool given(const Value* value) { return value != nullptr && !value->is_none(); }

template <bool left, bool right>
Value strip(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("strip", arguments, {"chars"});
  std::string_view text = self.bytes();
  charge_bytes(text.size());
  if (!given(bound[0])) {
    if (left) text.remove_prefix(leading_space(text));
    if (right) text.remove_suffix(trailing_space(text));
    return as_self(self, std::string(text));
  }
  const std::vector<uint32_t> chars = codes_of(text_of(*bound[0], "strip"));
  const std::vector<uint32_t> codes = codes_of(text);
  charge_values(codes.size());
  const auto strips = [&](uint32_t code) {
    return std::find(chars.begin(), chars.end(), code) != chars.end();
  };
  size_t begin = 0;
  size_t end = codes.size();
  while (left && begin < end && strips(codes[begin])) ++begin;
  while (right && end > begin && strips(codes[end - 1])) --end;
  charge_values((begin + codes.size() - end) * chars.size() / 8);
  return as_self(self, text_of({codes.begin() + static_cast<ptrdiff_t>(begin),
                                codes.begin() + static_cast<ptrdiff_t>(end)}));
}

template <bool from_right>
Value split(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("split", arguments, {"sep", "maxsplit"});
  const int64_t limit = bound[1] != nullptr ? integer_of(*bound[1], "split: maxsplit") : -1;
  Values parts = given(bound[0])
                     ? split_at(self.bytes(), text_of(*bound[0], "split"), limit, from_right)
                     : split_at_space(self.bytes(), limit, from_right);
  return Value::list(std::move(parts));
}

Value splitlines(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("splitlines", arguments, {"keepends"});
  return Value::list(split_lines(self.bytes(), bound[0] != nullptr && bound[0]->truth()));
}

// The part between the arguments start and end, and the character where it begins.
struct Part {
  std::string text;
  int64_t begin = 0;
  bool valid = true;  // begin lies in the text
};

Part part_of(const Value& self, const Value* start, const Value* end) {
  if (!given(start) && !given(end)) return {self.bytes(), 0, true};
  const int64_t length = length_of(self);
  Part part;
  part.begin = given(start) ? integer_of(*start, "start") : 0;
  if (part.begin < 0) part.begin = std::max<int64_t>(0, part.begin + length);
  part.valid = part.begin <= length;
  part.text = slice(self, start, end, nullptr).bytes();
  return part;
}

template <bool at_end>
Value starts(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound =
      bind(at_end ? "endswith" : "startswith", arguments, {"prefix", "start", "end"}, 1);
  const Part part = part_of(self, bound[1], bound[2]);
  const auto matches = [&](const Value& text) {
    const std::string& affix = text_of(text, at_end ? "endswith" : "startswith");
    return part.valid && (at_end ? part.text.ends_with(affix) : part.text.starts_with(affix));
  };
  if (!bound[0]->is_list(ListKind::tuple)) return matches(*bound[0]);
  const Values& any = bound[0]->as_list().items;
  charge_values(any.size());
  return std::any_of(any.begin(), any.end(), matches);
}

template <bool from_right, bool must>
Value find(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("find", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_of(*bound[0], "find");
  const Part part = part_of(self, bound[1], bound[2]);
  charge_bytes(self.bytes().size());
  const size_t at = !part.valid  ? std::string::npos
                    : from_right ? part.text.rfind(wanted)
                                 : part.text.find(wanted);
  if (at == std::string::npos) {
    if (must) fail("index: the text is not found");
    return -1;
  }
  return part.begin + static_cast<int64_t>(count_codes(std::string_view(part.text).substr(0, at)));
}

Value count(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("count", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = text_of(*bound[0], "count");
  const Part part = part_of(self, bound[1], bound[2]);
  charge_bytes(self.bytes().size());
  if (!part.valid) return 0;
  if (wanted.empty()) return static_cast<int64_t>(count_codes(part.text)) + 1;
  int64_t found = 0;
  for (size_t at = part.text.find(wanted); at != std::string::npos;
       at = part.text.find(wanted, at + wanted.size())) {
    ++found;
  }
  return found;
}

Value replace(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("replace", arguments, {"old", "new", "count"}, 2);
  const std::string& old = text_of(*bound[0], "replace");
  const std::string& by = text_of(*bound[1], "replace");
  int64_t left = bound[2] != nullptr ? integer_of(*bound[2], "replace: count") : -1;
  std::string out;
  std::string_view rest = self.bytes();
  charge_bytes(rest.size());
  const auto put = [&] {
    charge_bytes(by.size());
    check_growing(out.size() + by.size());
    out += by;
    --left;
  };
  if (old.empty()) {  // before every character and at the end
    charge_values(rest.size());
    while (left != 0) {
      put();
      if (rest.empty()) return as_self(self, std::move(out));
      const std::string_view c = first_character(rest);
      out += c;
      rest.remove_prefix(c.size());
    }
    return as_self(self, out.append(rest));
  }
  while (left != 0) {
    const size_t at = rest.find(old);
    if (at == std::string_view::npos) break;
    out += rest.substr(0, at);
    put();
    rest.remove_prefix(at + old.size());
  }
  return as_self(self, out.append(rest));
}

Value join(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("join", arguments, {"iterable"}, 1);
  require_defined(*bound[0]);
  std::string text;
  bool first = true;
  for (const Value& each : iterate(*bound[0])) {
    if (!std::exchange(first, false)) text += self.bytes();
    charge_bytes(self.bytes().size());
    text += text_of(each, "join");
    check_growing(text.size());
  }
  charge_bytes(text.size());
  return as_self(self, std::move(text));
}

template <std::string (*map)(std::string_view)>
Value map_case(Evaluator&, const Value& self, const Arguments& arguments) {
  bind("a method of str", arguments, {});
  charge_values(self.bytes().size());
  return as_self(self, map(self.bytes()));
}

template <bool suffix>
Value remove_affix(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("removeprefix and removesuffix", arguments, {"affix"}, 1);
  const std::string& affix = text_of(*bound[0], "removeprefix");
  std::string text = self.bytes();
  charge_bytes(text.size());
  if (suffix && text.ends_with(affix)) text.resize(text.size() - affix.size());
  if (!suffix && text.starts_with(affix)) text.erase(0, affix.size());
  return as_self(self, std::move(text));
}

template <char side>  // where the text goes: < > ^
Value justify(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("center, ljust and rjust", arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound[1] != nullptr ? text_of(*bound[1], "fillchar") : " ";
  if (count_codes(fill) != 1) fail("fillchar: expected one character");
  const int64_t width = integer_of(*bound[0], "width");
  const int64_t space = std::max<int64_t>(0, width - length_of(self));
  if (space > 1'000'000) fail("a width above a million");
  charge_values(static_cast<size_t>(space));
  // Python puts the odd one of a centered text on the left when the width is odd.
  const int64_t before = side == '<' ? 0 : side == '>' ? space : space / 2 + (space & width & 1);
  std::string text;
  for (int64_t i = 0; i < before; ++i) text += fill;
  text += self.bytes();
  for (int64_t i = before; i < space; ++i) text += fill;
  return as_self(self, std::move(text));
}

Value zfill(Evaluator&, const Value& self, const Arguments& arguments) {
  const int64_t width = integer_of(*bind("zfill", arguments, {"width"}, 1)[0], "zfill");
  const int64_t space = std::max<int64_t>(0, width - length_of(self));
  if (space > 1'000'000) fail("a width above a million");
  std::string text = self.bytes();
  const bool sign = text.starts_with('+') || text.starts_with('-');
  text.insert(sign ? 1 : 0, static_cast<size_t>(space), '0');
  return as_self(self, std::move(text));
}

template <bool from_right>
Value partition(Evaluator&, const Value& self, const Arguments& arguments) {
  const auto bound = bind("partition", arguments, {"sep"}, 1);
  const std::string& separator = text_of(*bound[0], "partition");
  if (separator.empty()) fail("partition: an empty separator");
  const std::string& text = self.bytes();
  charge_bytes(text.size());
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  Values parts;
  if (at != std::string::npos) {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  } else if (from_right) {
    parts = {"", "", text};
  } else {
    parts = {text, "", ""};
  }
  return Value::list(std::move(parts), ListKind::tuple);
}

Value format(Evaluator& e, const Value& self, const Arguments& arguments) {
  return format_braces(e, self.bytes(), arguments);
}

constexpr std::string_view kProperties[] = {"isalpha", "isdigit", "isdecimal", "isnumeric",
                                            "isalnum", "isspace", "isupper",   "islower",
                                            "istitle", "isascii"};

template <size_t property>
Value has(Evaluator&, const Value& self, const Arguments& arguments) {
  bind("a method of str", arguments, {});
  charge_values(self.bytes().size());
  return has_property(self.bytes(), kProperties[property]);
}

using NamedMethod = std::pair<std::string_view, Method>;

constexpr NamedMethod kMethods[] = {
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"rsplit", split<true>},
    {"splitlines", splitlines},
    {"startswith", starts<false>},
    {"endswith", starts<true>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"replace", replace},
    {"join", join},
    {"upper", map_case<to_upper>},
    {"lower", map_case<to_lower>},
    {"title", map_case<to_title>},
    {"capitalize", map_case<capitalize>},
    {"swapcase", map_case<swap_case>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"center", justify<'^'>},
    {"ljust", justify<'<'>},
    {"rjust", justify<'>'>},
    {"zfill", zfill},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"format", format},
    {"isalpha", has<0>},
    {"isdigit", has<1>},
    {"isdecimal", has<2>},
    {"isnumeric", has<3>},
    {"isalnum", has<4>},
    {"isspace", has<5>},
    {"isupper", has<6>},
    {"islower", has<7>},
    {"istitle", has<8>},
    {"isascii", has<9>},
};

constexpr std::string_view kUnsupported[] = {"encode",     "maketrans",    "translate",
                                             "format_map", "isidentifier", "isprintable",
                                             "casefold",   "expandtabs"};

}  // namespace

Method find_string_method(std::string_view name) {
  for (const NamedMethod& each : kMethods) {
    if (each.first == name) return each.second;
  }
  for (const std::string_view each : kUnsupported) {
    if (each == name) fail("the method " + std::string(name) + " of texts is not supported");
  }
  return nullptr;
}

}  // namespace hearth::jinja
