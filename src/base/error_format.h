// Errors whose message is a format string: input_error("{}:{}: expected {}, found {}", ...).
// Separate from error.h because few sources need the formatter's header.
#pragma once

#include <fmt/core.h>

#include "base/error.h"

namespace hearth {

Error formatted_error(ExitCode code, fmt::string_view format, fmt::format_args values);

template <class First, class... Rest>
Error usage_error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  return formatted_error(ExitCode::usage, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
Error input_error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  return formatted_error(ExitCode::input, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
Error storage_error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  return formatted_error(ExitCode::storage, format, fmt::make_format_args(first, rest...));
}
template <class First, class... Rest>
Error device_error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  return formatted_error(ExitCode::device, format, fmt::make_format_args(first, rest...));
}

}  // namespace hearth
