// Results on standard output.
#pragma once

#include <string_view>

#include "base/json.h"

namespace hearth {

/// Raise storage errors when standard output cannot be written (full disk, reader gone).
void print(std::string_view text);
void print_json(const Json& json);  // one document, indented, and a newline
void flush_stdout();

}  // namespace hearth
