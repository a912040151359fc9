#include "jinja/format_braces.h"

#include "jinja/format.h"
#include "jinja/meter.h"
#include "jinja/operators.h"
#include "jinja/write.h"

namespace hearth::jinja {

std::string format_braces(Evaluator& e, const std::string& format, const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  bool counted = false;  // a {0}
  charge_bytes(format.size());
  const auto first_of = [&](const std::string& name) -> Value {
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    counted = counted || number;
    if (name.empty() || number) {
      const size_t at = name.empty() ? next++ : name.size() > 6 ? SIZE_MAX : std::stoul(name);
      if (counted && next > 0) fail("format: both {} and {0}");
      if (at >= arguments.positional.size()) fail("format: not enough values");
      return arguments.positional[at];
    }
    for (const auto& [key, value] : arguments.named) {
      if (key == name) return value;
    }
    fail("format: no value for '" + name + "'");
  };
  for (std::string_view rest = format; !rest.empty();) {
    const size_t brace = rest.find_first_of("{}");
    out += rest.substr(0, brace);
    if (brace == std::string_view::npos) break;
    rest.remove_prefix(brace);
    if (rest.size() > 1 && rest[1] == rest[0]) {
      out += rest[0];
      rest.remove_prefix(2);
      continue;
    }
    const size_t end = rest.find('}');
    if (rest[0] == '}' || end == std::string_view::npos) fail("format: a single brace");
    std::string field(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (field.find('{') != std::string::npos) fail("format: nested fields are not supported");
    std::string spec;
    if (const size_t colon = field.find(':'); colon != std::string::npos) {
      spec = field.substr(colon + 1);
      field.resize(colon);
    }
    char conversion = 0;
    if (field.size() > 1 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.resize(field.size() - 2);
    }
    size_t at = field.find_first_of(".[");
    Value value = first_of(field.substr(0, at));
    while (at != std::string::npos && at < field.size()) {
      const bool dot = field[at] == '.';
      const size_t stop = dot ? field.find_first_of(".[", at + 1) : field.find(']', at);
      if (!dot && stop == std::string::npos) fail("format: '[' without ']'");
      const std::string part =
          field.substr(at + 1, stop == std::string::npos ? stop : stop - at - 1);
      if (part.empty()) fail("format: '.' or '[' without a name");
      const bool number =
          part.size() < 7 && part.find_first_not_of("0123456789") == std::string::npos;
      value = dot      ? e.attribute(value, part)
              : number ? e.item(value, Value(static_cast<int64_t>(std::stoul(part))))
                       : e.item(value, Value(part));
      at = dot ? stop : stop + 1;
    }
    if (conversion == 'r') value = to_repr(value);
    if (conversion == 's') value = to_text(value);
    if (conversion != 0 && conversion != 'r' && conversion != 's') {
      fail("format: unknown conversion");
    }
    out += format_value(value, spec);
    check_growing(out.size());
    charge_bytes(out.size() / 8);
  }
  return out;
}

}  // namespace hearth::jinja
