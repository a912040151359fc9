// Kinds of option values: how a text becomes a member of Options and back.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/options.h"

namespace hearth {

enum class OptionKind : uint8_t {
  text,
  integer,
  size,
  interval,
  number,
  choice,
  on_off,
  flag,
  list,
  pair
};

/// A value of one kind, bound to a member of Options.
struct OptionValue {
  OptionKind kind = OptionKind::text;
  std::string placeholder;  // for help: "N", "DIR", "on|off"; empty for a flag
  std::string range;        // for help, empty where any text will do
  /// Sets the member. A list takes any number of texts, a pair two, everything else one. Returns what
  /// is wrong with them ("expected ..., found ..."), nullopt if nothing; then the member is set.
  std::function<std::optional<std::string>(Options&, const std::vector<std::string>&)> set;
  /// The member as YAML on one line, "null" when unset; `set` reads it back from a YAML file.
  std::function<std::string(const Options&)> get;
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

OptionValue text_value(std::string Options::*member, std::string placeholder);
/// Any number of texts; `commas`: one text may hold several, separated by commas.
OptionValue list_value(std::vector<std::string> Options::*member, std::string placeholder,
                       bool commas = false);
/// Two texts behind one name.
OptionValue pair_value(std::vector<std::string> Options::*member, std::string placeholder);
OptionValue integer_value(int64_t Options::*member, int64_t least, int64_t most = kNoLimit);
OptionValue integer_value(int Options::*member, int least, int most);
OptionValue integer_value(std::optional<int64_t> Options::*member, int64_t least,
                          int64_t most = kNoLimit);
/// 0 unsets it.
OptionValue integer_or_off_value(std::optional<int64_t> Options::*member);
OptionValue seed_value(uint64_t Options::*member);
OptionValue size_value(uint64_t Options::*member);
OptionValue interval_value(Interval Options::*member);

/// Bounds of a number; each belongs to the range unless it is open.
struct NumberRange {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool open_least = false;
  bool open_most = false;
};
/// A share below 1, or a whole number; 0: none.
OptionValue share_or_count_value(double Options::*member);
OptionValue number_value(double Options::*member, NumberRange range);
OptionValue number_value(std::optional<double> Options::*member, NumberRange range);

/// Given by its name alone, or with on, off, true or false.
OptionValue flag_value(bool Options::*member);
/// on or off (true, false).
OptionValue switch_value(bool Options::*member);

/// One of the names; `later` are names that the contract has and this version has not.
OptionValue choice_value(std::vector<std::string> names, std::vector<std::string> later,
                         std::function<void(Options&, size_t)> set,
                         std::function<size_t(const Options&)> get);

template <class E>
using NamedValues = std::vector<std::pair<std::string, E>>;

template <class E, class C>
OptionValue choice_value(E C::*member, NamedValues<E> values, std::vector<std::string> later = {}) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return choice_value(
      std::move(names), std::move(later),
      [member, values](Options& options, size_t i) { options.*member = values[i].second; },
      [member, values](const Options& options) {
        size_t i = 0;
        while (i + 1 < values.size() && !(values[i].second == options.*member)) ++i;
        return i;
      });
}

}  // namespace hearth
