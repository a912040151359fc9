// Prints results to standard output.
#pragma once

#include <string_view>

#include "base/json.h"

namespace hearth {

/// Thrown if the reader of standard output closed the pipe. The command then ends without an error
/// line.
struct ReaderGone {};

/// Raise a storage error if standard output cannot be written (full disk), ReaderGone if the pipe
/// has no reader.
void print(std::string_view text);
void print_json(const Json& json);  // one document, indented, and a newline
void flush_stdout();
void print_at_once(std::string_view text);  // prints and flushes

}  // namespace hearth
