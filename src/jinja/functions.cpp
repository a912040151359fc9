#include "jinja/functions.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "base/error.h"
#include "jinja/objects.h"
#include "jinja/operators.h"
#include "jinja/sequences.h"
#include "jinja/write.h"

namespace hearth::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // of Jinja's sandbox

std::shared_ptr<Dict> make_dict(const Arguments& arguments) {
  auto dict = std::make_shared<Dict>();
  if (arguments.positional.size() > 1) fail("dict takes at most 1 argument without a name");
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    require_defined(from);
    if (from.is_dict()) {
      *dict = from.as_dict();
      dict->message = -1;
    } else {
      for (const Value& pair : iterate(from)) {
        const Values parts = iterate(pair);
        if (parts.size() != 2) fail("dict of a list: expected pairs");
        if (parts[0].is_dict() || parts[0].is_list(ListKind::list)) {
          fail("unhashable type: '" + parts[0].type_name() + "'");
        }
        charge_values(dict->items.size() / 8);
        dict->set(parts[0], parts[1]);
      }
    }
  }
  charge_values(dict->items.size());
  for (const auto& [name, value] : arguments.named) dict->set(name, value);
  return dict;
}

Value function_dict(Evaluator&, const Arguments& arguments) { return make_dict(arguments); }

Value function_namespace(Evaluator& e, const Arguments& arguments) {
  const auto space = std::make_shared<NamespaceObject>();
  e.keep(space);
  const auto dict = make_dict(arguments);
  for (auto& [name, value] : dict->items) {
    space->set(text_of(name, "name of an attribute"), std::move(value));
  }
  return std::static_pointer_cast<Object>(space);
}

Value function_range(Evaluator&, const Arguments& arguments) {
  const auto bound = bind("range", arguments, {"start", "stop", "step"}, 1);
  if (!arguments.named.empty()) fail("range takes no named arguments");
  int64_t start = integer_of(*bound[0], "range");
  int64_t stop = bound[1] != nullptr ? integer_of(*bound[1], "range") : start;
  if (bound[1] == nullptr) start = 0;
  const int64_t step = bound[2] != nullptr ? integer_of(*bound[2], "range") : 1;
  if (step == 0) fail("range with a step of zero");
  Values items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    charge(1);
    if (items.size() == static_cast<size_t>(kMaxRange)) {
      fail("a range of more than " + std::to_string(kMaxRange) + " numbers");
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  const Value range = Value::list(std::move(items), ListKind::range);
  std::copy_n(std::array{start, stop, step}.begin(), 3, range.as_list().range);
  return range;
}

Value function_raise(Evaluator&, const Arguments& arguments) {
  const auto bound = bind("raise_exception", arguments, {"message"}, 1);
  fail("the template refuses this chat: " + quoted(to_text(*bound[0])));
}

Value function_now(Evaluator& e, const Arguments& arguments) {
  const auto bound = bind("strftime_now", arguments, {"format"}, 1);
  std::tm day{};
  day.tm_year = std::stoi(e.date().substr(0, 4)) - 1900;
  day.tm_mon = std::stoi(e.date().substr(5, 2)) - 1;
  day.tm_mday = std::stoi(e.date().substr(8, 2));
  day.tm_isdst = 0;
  ::timegm(&day);      // fills the day of the week and of the year
  std::string format;  // Python's %f, %z and %Z of a time without a zone
  const std::string& given = text_of(*bound[0], "strftime_now");
  if (given.size() > 1000) fail("strftime_now: a format of more than 1000 characters");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%' || i + 1 == given.size()) {
      format += given[i];
      continue;
    }
    const char code = given[++i];
    if (code == 's') fail("strftime_now: the format %s is not supported");
    if (code == 'f') format += "000000";
    if (code != 'f' && code != 'z' && code != 'Z') format.append("%").append(1, code);
  }
  std::array<char, 16'384> text;
  const size_t length = std::strftime(text.data(), text.size(), format.c_str(), &day);
  return std::string(text.data(), length);
}

struct Joiner final : Object {
  std::string type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Evaluator&, Arguments& arguments) override {
    bind("a joiner", arguments, {});
    if (std::exchange(used, true)) return separator;
    return "";
  }
  Value separator{", "};
  bool used = false;
};

Value function_joiner(Evaluator&, const Arguments& arguments) {
  const auto bound = bind("joiner", arguments, {"sep"});
  const auto joiner = std::make_shared<Joiner>();
  if (bound[0] != nullptr) joiner->separator = *bound[0];
  joiner->depth = joiner->separator.depth() + 1;
  return std::static_pointer_cast<Object>(joiner);
}

struct Cycler final : Object, std::enable_shared_from_this<Cycler> {
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Evaluator&, const std::string& name) override {
    if (name == "current") return items[at];
    if (name != "next" && name != "reset") return std::nullopt;
    const Value self = std::static_pointer_cast<Object>(shared_from_this());
    std::shared_ptr<Object> object =
        std::make_shared<MethodObject>(self, name == "next" ? &Cycler::next : &Cycler::reset);
    return Value(std::move(object));
  }
  static Value next(Evaluator&, const Value& self, const Arguments& arguments) {
    bind("next", arguments, {});
    auto& cycler = static_cast<Cycler&>(self.as_object());
    const size_t now = cycler.at;
    cycler.at = (now + 1) % cycler.items.size();
    return cycler.items[now];
  }
  static Value reset(Evaluator&, const Value& self, const Arguments& arguments) {
    bind("reset", arguments, {});
    static_cast<Cycler&>(self.as_object()).at = 0;
    return {};
  }
  Values items;
  size_t at = 0;
};

Value function_cycler(Evaluator&, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) fail("cycler needs items");
  const auto cycler = std::make_shared<Cycler>();
  cycler->items = arguments.positional;
  cycler->depth = Value::list(arguments.positional).depth() + 1;
  return std::static_pointer_cast<Object>(cycler);
}

}  // namespace

Function find_function(const std::string& name) {
  static constexpr std::pair<std::string_view, Function> kFunctions[] = {
      {"range", function_range},         {"dict", function_dict},
      {"namespace", function_namespace}, {"raise_exception", function_raise},
      {"strftime_now", function_now},    {"joiner", function_joiner},
      {"cycler", function_cycler},
  };
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return function;
  }
  return nullptr;
}

}  // namespace hearth::jinja
