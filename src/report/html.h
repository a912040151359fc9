// Text and numbers for a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

/// Escapes untrusted text for an element or a quoted attribute. Invalid UTF-8 and control
/// characters become U+FFFD.
std::string escaped(std::string_view text);

/// Escapes "<" in JSON for a script element, because "</script>" would end the element.
std::string script_safe(std::string json);

/// "1 resume", "3 resumes".
std::string plural_text(int64_t count, const std::string& name);
std::string count_text(int64_t count);        // "1,234,567"
std::string rounded_count(int64_t count);     // "950", "12.3 thousand", "1.60 billion"
std::string number_text(double number);       // four digits: "0.0125", "1,234", "1.2e-05"
std::string exact_number(double number);      // reads back to the same double; "null" if not finite
std::string bytes_text(double bytes);         // "1.342 GB"
std::string duration_text(double seconds);    // "3.2 s", "4 min 5 s", "2 h 3 min", "5 d 6 h"
std::string percent_text(double percent);     // "12.5 %"
std::string date_text(std::string_view utc);  // "2024-06-07 12:34:56 UTC" from journal times

}  // namespace hearth
