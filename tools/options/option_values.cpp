#include "options/option_values.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/numbers.h"
#include "options/value_parts.h"

namespace hearth {
namespace {

std::string integer_range(int64_t least, int64_t most) {
  if (most == kNoLimit) return "at least " + std::to_string(least);
  return std::to_string(least) + " to " + std::to_string(most);
}

std::optional<int64_t> count_within(const std::string& text, int64_t least, int64_t most) {
  const auto value = parse_count(text);
  if (!value || *value < least || *value > most) return std::nullopt;
  return value;
}

template <class Member>
OptionValue bounded_integer(Member member, int64_t least, int64_t most,
                            std::function<std::string(const Options&)> get) {
  const std::string range = integer_range(least, most);
  return {OptionKind::integer, "N", range,
          single([=](Options& options, const std::string& text) -> Problem {
            const auto value = count_within(text, least, most);
            if (!value) return unexpected("a whole number, " + range, text);
            member(options, *value);
            return std::nullopt;
          }),
          std::move(get)};
}

std::string number_range(const NumberRange& range) {
  const std::string least =
      (range.open_least ? "above " : "at least ") + format_number(range.least);
  if (std::isinf(range.most)) return least;
  if (range.open_least || range.open_most) {
    return least + (range.open_most ? ", below " : ", at most ") + format_number(range.most);
  }
  return format_number(range.least) + " to " + format_number(range.most);
}

bool within(const NumberRange& range, double value) {
  return (range.open_least ? value > range.least : value >= range.least) &&
         (range.open_most ? value < range.most : value <= range.most);
}

template <class T>
OptionValue bounded_number(T Options::*member, NumberRange range,
                           std::function<std::string(const Options&)> get) {
  const std::string words = number_range(range);
  return {OptionKind::number, "X", words,
          single([=](Options& options, const std::string& text) -> Problem {
            const auto value = parse_number(text);
            if (!value || !within(range, *value)) return unexpected("a number, " + words, text);
            options.*member = *value;
            return std::nullopt;
          }),
          std::move(get)};
}

/// on and off, and the other words of YAML and Python, in any case.
std::optional<bool> parse_switch(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text == "on" || text == "true" || text == "yes") return true;
  if (text == "off" || text == "false" || text == "no") return false;
  return std::nullopt;
}

OptionValue bool_value(OptionKind kind, std::string placeholder, bool Options::*member) {
  return {kind, std::move(placeholder), "",
          single([member](Options& options, const std::string& text) -> Problem {
            const auto value = parse_switch(text);
            if (!value) return unexpected("on or off", text);
            options.*member = *value;
            return std::nullopt;
          }),
          [member](const Options& options) { return options.*member ? "on" : "off"; }};
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace

OptionValue text_value(std::string Options::*member, std::string placeholder) {
  const std::string what = placeholder;
  return {OptionKind::text, std::move(placeholder), "",
          single([member, what](Options& options, const std::string& text) -> Problem {
            if (text.empty()) return "expected " + what + ", found an empty text";
            options.*member = text;
            return std::nullopt;
          }),
          [member](const Options& options) { return yaml_text(options.*member); }};
}

OptionValue pair_value(std::vector<std::string> Options::*member, std::string placeholder) {
  const std::string what = placeholder;
  return {
      OptionKind::pair, std::move(placeholder), "",
      [member, what](Options& options, const std::vector<std::string>& texts) -> Problem {
        if (texts.size() != 2 || texts[0].empty() || texts[1].empty()) {
          return "expected " + what + ", found " +
                 (texts.size() == 2 ? "an empty text" : std::to_string(texts.size()) + " of two");
        }
        options.*member = texts;
        return std::nullopt;
      },
      [member](const Options& options) { return yaml_list(options.*member); }};
}

OptionValue list_value(std::vector<std::string> Options::*member, std::string placeholder,
                       bool commas) {
  return {OptionKind::list, std::move(placeholder), "",
          [member, commas](Options& options, const std::vector<std::string>& texts) -> Problem {
            std::vector<std::string> items;
            for (const std::string& text : texts) {
              size_t begin = 0;
              const size_t comma_end = commas ? text.size() : 0;
              for (size_t i = 0; i < comma_end; ++i) {
                if (text[i] != ',') continue;
                items.push_back(text.substr(begin, i - begin));
                begin = i + 1;
              }
              items.push_back(text.substr(begin));
            }
            if (std::find(items.begin(), items.end(), "") != items.end()) {
              return "expected a list without empty items";
            }
            options.*member = std::move(items);
            return std::nullopt;
          },
          [member](const Options& options) { return yaml_list(options.*member); }};
}

OptionValue integer_value(int64_t Options::*member, int64_t least, int64_t most) {
  return bounded_integer([member](Options& o, int64_t value) { o.*member = value; }, least, most,
                         [member](const Options& o) { return std::to_string(o.*member); });
}

OptionValue integer_value(int Options::*member, int least, int most) {
  return bounded_integer(
      [member](Options& o, int64_t value) { o.*member = static_cast<int>(value); }, least, most,
      [member](const Options& o) { return std::to_string(o.*member); });
}

OptionValue integer_value(std::optional<int64_t> Options::*member, int64_t least, int64_t most) {
  return bounded_integer(
      [member](Options& o, int64_t value) { o.*member = value; }, least, most,
      [member](const Options& o) { return o.*member ? std::to_string(*(o.*member)) : "null"; });
}

OptionValue integer_or_off_value(std::optional<int64_t> Options::*member) {
  return bounded_integer(
      [member](Options& o, int64_t value) {
        o.*member = value == 0 ? std::nullopt : std::optional(value);
      },
      0, kNoLimit, [member](const Options& o) { return std::to_string((o.*member).value_or(0)); });
}

OptionValue seed_value(uint64_t Options::*member) {
  return {OptionKind::integer, "N", "0 to 18446744073709551615",
          single([member](Options& options, const std::string& text) -> Problem {
            const auto value = parse_seed(text);
            if (!value) return unexpected("a whole number, 0 to 18446744073709551615", text);
            options.*member = *value;
            return std::nullopt;
          }),
          [member](const Options& options) { return std::to_string(options.*member); }};
}

OptionValue size_value(uint64_t Options::*member) {
  return {OptionKind::size, "SIZE", "",
          single([member](Options& options, const std::string& text) -> Problem {
            const auto value = parse_size(text);
            if (!value) {
              return unexpected("a number of bytes, optionally with k, M, G, T, Ki, Mi, Gi or Ti",
                                text);
            }
            options.*member = *value;
            return std::nullopt;
          }),
          [member](const Options& options) { return std::to_string(options.*member); }};
}

OptionValue duration_value(double Options::*member, double least, double most) {
  const std::string range = format_number(least) + "s to " + format_number(most) + "s";
  return {OptionKind::interval, "TIME", range,
          single([=](Options& options, const std::string& text) -> Problem {
            const auto seconds = parse_duration(text);
            if (!seconds || *seconds < least || *seconds > most) {
              return unexpected("a time such as 90s, 30m or 1h, " + range, text);
            }
            options.*member = *seconds;
            return std::nullopt;
          }),
          [member](const Options& options) { return format_number(options.*member) + "s"; }};
}

OptionValue duration_value(std::optional<double> Options::*member) {
  return {OptionKind::interval, "TIME", "a time with s, m or h",
          single([=](Options& options, const std::string& text) -> Problem {
            const auto seconds = parse_duration(text);
            if (!seconds || *seconds <= 0) {
              return unexpected("a time such as 90s, 30m or 1h", text);
            }
            options.*member = *seconds;
            return std::nullopt;
          }),
          [member](const Options& options) -> std::string {
            return options.*member ? format_number(*(options.*member)) + "s" : "null";
          }};
}

OptionValue interval_value(Interval Options::*member) {
  return {OptionKind::interval, "N|TIME|epoch", "steps, at least 0, or a time with s, m or h",
          single([member](Options& options, const std::string& text) -> Problem {
            const auto seconds = parse_duration(text);
            const auto steps = count_within(text, 0, kNoLimit);
            const bool epoch = text == "epoch";
            if (!epoch && !steps && !(seconds && *seconds > 0)) {
              return unexpected("a number of steps, a time such as 90s, 30m or 1h, or epoch", text);
            }
            options.*member = Interval{};
            if (epoch) {
              (options.*member).epoch = true;
            } else if (!steps) {
              (options.*member).seconds = *seconds;
            } else if (*steps > 0) {
              (options.*member).steps = *steps;
            }
            return std::nullopt;
          }),
          [member](const Options& options) {
            const Interval& interval = options.*member;
            if (interval.epoch) return std::string("epoch");
            if (interval.seconds) return format_number(*interval.seconds) + "s";
            return std::to_string(interval.steps.value_or(0));
          }};
}

OptionValue number_value(double Options::*member, NumberRange range) {
  return bounded_number(member, range,
                        [member](const Options& o) { return format_number(o.*member); });
}

OptionValue number_value(std::optional<double> Options::*member, NumberRange range) {
  return bounded_number(member, range, [member](const Options& o) -> std::string {
    return o.*member ? format_number(*(o.*member)) : "null";
  });
}

OptionValue share_or_count_value(double Options::*member) {
  return {OptionKind::number, "X", "0, below 1 or a whole number",
          single([member](Options& options, const std::string& text) -> Problem {
            const auto value = parse_number(text);
            if (!value || !(*value >= 0 && *value <= 1e15) ||
                (*value >= 1 && *value != std::floor(*value))) {
              return unexpected("a share below 1 or a whole number", text);
            }
            options.*member = *value;
            return std::nullopt;
          }),
          [member](const Options& options) { return format_number(options.*member); }};
}

OptionValue flag_value(bool Options::*member) { return bool_value(OptionKind::flag, "", member); }

OptionValue switch_value(bool Options::*member) {
  return bool_value(OptionKind::on_off, "on|off", member);
}

OptionValue choice_value(std::vector<std::string> names, std::vector<std::string> later,
                         std::function<void(Options&, size_t)> set,
                         std::function<size_t(const Options&)> get) {
  return {OptionKind::choice, joined(names, "|"), "",
          single([=](Options& options, const std::string& text) -> Problem {
            for (size_t i = 0; i < names.size(); ++i) {
              if (names[i] != text) continue;
              set(options, i);
              return std::nullopt;
            }
            // A name with a number or keys behind it (cuda:0, virtual:mem=8G) is known by its head.
            const std::string head = text.substr(0, text.find(':'));
            if (std::find(later.begin(), later.end(), head) != later.end()) {
              return quoted(text) + " is not in this version, which has " + joined(names, ", ");
            }
            return unexpected(joined(names, ", "), text);
          }),
          [=](const Options& options) { return names[get(options)]; }};
}

}  // namespace hearth
