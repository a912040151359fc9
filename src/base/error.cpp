#include "base/error.h"

#include <fmt/format.h>

#include "base/error_format.h"
#include "base/utf8.h"

namespace hearth {
namespace {

constexpr size_t kMaxQuoted = 200;  // characters

// Characters that would act on a terminal or reorder the line instead of being shown in it.
bool acts_on_terminal(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// The first `limit` characters, with those that cannot be shown replaced by '?'.
std::string shown(std::string_view text, size_t limit) {
  std::string result;
  size_t at = 0;
  for (size_t count = 0; at < text.size() && count < limit; ++count) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (c.length == 0 || acts_on_terminal(c.code)) {
      result += '?';
    } else {
      result.append(text.substr(at, c.length));
    }
    at += c.length == 0 ? 1 : c.length;
  }
  if (at < text.size()) result += "...";
  return result;
}

}  // namespace

// Messages name paths and other text from outside: the whole line is made fit to be shown.
Error::Error(ExitCode code, const std::string& message)
    : std::runtime_error(shown(message, message.size())), code_(code) {}

Error usage_error(const std::string& message) { return {ExitCode::usage, message}; }
Error input_error(const std::string& message) { return {ExitCode::input, message}; }
Error storage_error(const std::string& message) { return {ExitCode::storage, message}; }
Error numeric_error(const std::string& message) { return {ExitCode::numeric, message}; }
Error device_error(const std::string& message) { return {ExitCode::device, message}; }

Error formatted_error(ExitCode code, fmt::string_view format, fmt::format_args values) {
  return {code, fmt::vformat(format, values)};
}

std::string Quoted::operator()(std::string_view text) const {
  return "'" + shown(text, kMaxQuoted) + "'";
}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + condition + ": " +
                         detail);
}

}  // namespace hearth
