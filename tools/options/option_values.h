// Kinds of option values: convert texts to members of Options and back.
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
  std::string range;        // for help; empty if any text is valid
  /// Sets the member from texts: any number for a list, two for a pair, else one. Returns an error
  /// ("expected ..., found ..."), or nullopt if the member was set.
  std::function<std::optional<std::string>(Options&, const std::vector<std::string>&)> set;
  /// The member as YAML on one line, "null" if unset; `set` can read it back.
  std::function<std::string(const Options&)> get;
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

OptionValue text_value(std::string Options::*member, std::string placeholder);
/// Any number of texts. `commas`: one text may hold several values, separated by commas.
OptionValue list_value(std::vector<std::string> Options::*member, std::string placeholder,
                       bool commas = false);
/// Two texts after one name.
OptionValue pair_value(std::vector<std::string> Options::*member, std::string placeholder);
OptionValue integer_value(int64_t Options::*member, int64_t least, int64_t most = kNoLimit);
OptionValue integer_value(int Options::*member, int least, int most);
OptionValue integer_value(std::optional<int64_t> Options::*member, int64_t least,
                          int64_t most = kNoLimit);
/// 0 unsets it.
OptionValue integer_or_off_value(std::optional<int64_t> Options::*member);
OptionValue seed_value(uint64_t Options::*member);
OptionValue size_value(uint64_t Options::*member);
/// A time such as 90s or 5m, in seconds.
OptionValue duration_value(double Options::*member, double least, double most);
/// A time above 0; unset by default.
OptionValue duration_value(std::optional<double> Options::*member);
/// Steps, a time, or the end of each epoch.
OptionValue interval_value(Interval Options::*member);

/// Bounds of a number. The range includes a bound unless it is open.
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

/// A name without a value, or with on, off, true or false.
OptionValue flag_value(bool Options::*member);
/// on or off (true, false).
OptionValue switch_value(bool Options::*member);

/// One of the names. `later`: names for a later version, which are an error now.
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
