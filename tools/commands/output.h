// Results on standard output.
#pragma once

#include <string_view>

#include "base/json.h"

namespace hearth {

/// The reader of standard output closed its end: the command ends without an error line.
struct ReaderGone {};

/// Raise storage errors when standard output cannot be written (full disk), ReaderGone when a pipe
/// has no reader any more.
void print(std::string_view text);
void print_json(const Json& json);  // one document, indented, and a newline
void flush_stdout();

}  // namespace hearth
