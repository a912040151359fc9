// Private to the room: the grammar of a safetensors header.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/safetensors_header.h"

namespace hearth {

/// Entries, in the order of the text, and metadata. `parse_safetensors_header` then checks names,
/// sizes and offsets against each other and the file. The text must be valid UTF-8.
SafetensorsHeader scan_safetensors_header(std::string_view text, const std::string& source);

}  // namespace hearth
