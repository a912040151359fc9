// Numbers that users write. Parsing ignores the locale and takes the whole text. It accepts no
// surrounding space, NaN or infinity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// nullopt if the text is not exactly one such value.
std::optional<int64_t> parse_count(std::string_view text);
std::optional<uint64_t> parse_seed(std::string_view text);
std::optional<double> parse_number(std::string_view text);
std::optional<uint64_t> parse_size(std::string_view text);  // bytes; k M G T Ki Mi Gi Ti, B or no B
std::optional<double> parse_duration(std::string_view text);  // seconds; s m h
std::optional<double> parse_latency(std::string_view text);   // seconds; us ms s, or no unit
std::string format_number(double value);                      // shortest text that reads back

}  // namespace hearth
