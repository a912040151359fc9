// Changes one member in the text of a JSON file and keeps all other bytes, such as escapes, the
// order of keys and numbers beyond double precision.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth {

/// Sets a member of the outermost object of `text`, and adds it at the end if absent. Input error,
/// naming `source`, if `text` is not a JSON object.
std::string with_member(const std::string& text, std::string_view key, const Json& value,
                        const std::string& source);

}  // namespace hearth
