#include "report/html.h"

#include <fmt/core.h>

#include <cmath>

#include "base/json.h"
#include "base/size_text.h"
#include "base/utf8.h"

namespace hearth {
namespace {

constexpr const char* kNoNumber = "\u2013";
constexpr std::string_view kReplacement = "\uFFFD";

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    const bool is_control =
        (c.code < 0x20 && c.code != '\n' && c.code != '\t') || (c.code >= 0x7f && c.code < 0xa0);
    // Marks that turn the direction of what follows would let a text pose as another.
    const bool is_turn = (c.code >= 0x202a && c.code <= 0x202e) ||
                         (c.code >= 0x2066 && c.code <= 0x2069) || c.code == 0xfffe ||
                         c.code == 0xffff;
    if (c.length == 0 || is_control || is_turn) {
      result += kReplacement;
    } else if (c.code == '&') {
      result += "&amp;";
    } else if (c.code == '<') {
      result += "&lt;";
    } else if (c.code == '>') {
      result += "&gt;";
    } else if (c.code == '"') {
      result += "&quot;";
    } else if (c.code == '\'') {
      result += "&#39;";
    } else {
      result += text.substr(at, c.length);
    }
    at += c.length == 0 ? 1 : c.length;
  }
  return result;
}

std::string script_safe(std::string json) {
  for (size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6) {
    json.replace(at, 1, "\\u003c");
  }
  return json;
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t sign = count < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > sign + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string plural_text(int64_t count, const std::string& name) {
  return count_text(count) + " " + name + (count == 1 ? "" : "s");
}

std::string rounded_count(int64_t count) {
  if (count < 100'000) return count_text(count);
  const char* const units[] = {"thousand", "million", "billion", "trillion"};
  double value = static_cast<double>(count) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit < 3) value /= 1000, ++unit;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string number_text(double number) {
  if (!std::isfinite(number)) return kNoNumber;
  const double size = std::abs(number);
  if (size >= 1000 && size < 1e15) return count_text(std::llround(number));
  if (size == 0) return "0";
  return fmt::format("{:.4g}", number);
}

std::string exact_number(double number) { return Json(number).dump(); }

std::string bytes_text(double bytes) {
  if (!(bytes >= 0 && bytes < 0x1p63)) return kNoNumber;
  return size_text(static_cast<uint64_t>(bytes + 0.5));
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return kNoNumber;
  if (seconds > 0 && seconds < 0.1) return fmt::format("{:.3g} ms", 1000 * seconds);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  const auto s = static_cast<int64_t>(seconds);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 48 * 3600) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} d {} h", s / 86400, s % 86400 / 3600);
}

std::string percent_text(double percent) {
  if (!std::isfinite(percent)) return kNoNumber;
  return fmt::format("{:.{}f} %", percent, std::abs(percent) < 9.95 ? 2 : 1);
}

std::string date_text(std::string_view utc) {
  if (utc.size() < 20 || utc[10] != 'T') return std::string(utc);
  return std::string(utc.substr(0, 10)) + " " + std::string(utc.substr(11, 8)) + " UTC";
}

}  // namespace hearth
