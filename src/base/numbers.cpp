#include "base/numbers.h"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <system_error>

namespace hearth {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A number followed by one of the units; the number times factor, by divisor: 1e-6 is not exact.
struct Unit {
  std::string_view name;
  double factor;
  double divisor = 1;
};
std::optional<double> parse_with_unit(std::string_view text, std::initializer_list<Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto value = parse_number(text.substr(0, text.size() - unit.name.size()));
    if (!value || *value < 0) return std::nullopt;
    return *value * unit.factor / unit.divisor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) { return parse_whole<int64_t>(text); }

std::optional<uint64_t> parse_seed(std::string_view text) { return parse_whole<uint64_t>(text); }

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  if (text.ends_with('B')) text.remove_suffix(1);  // 64GB, 64GiB
  if (const auto bytes = parse_whole<uint64_t>(text)) return bytes;
  const auto bytes = parse_with_unit(text, {{"Ki", 0x1p10},
                                            {"Mi", 0x1p20},
                                            {"Gi", 0x1p30},
                                            {"Ti", 0x1p40},
                                            {"k", 1e3},
                                            {"M", 1e6},
                                            {"G", 1e9},
                                            {"T", 1e12}});
  if (!bytes || *bytes >= 0x1p63) return std::nullopt;
  return static_cast<uint64_t>(*bytes);
}

std::optional<double> parse_duration(std::string_view text) {
  const auto seconds = parse_with_unit(text, {{"s", 1}, {"m", 60}, {"h", 3600}});
  return seconds && std::isfinite(*seconds) ? seconds : std::nullopt;
}

std::optional<double> parse_latency(std::string_view text) {
  const auto seconds = parse_with_unit(text, {{"us", 1, 1e6}, {"ms", 1, 1e3}, {"s", 1}, {"", 1}});
  return seconds && std::isfinite(*seconds) ? seconds : std::nullopt;
}

std::string format_number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace hearth
