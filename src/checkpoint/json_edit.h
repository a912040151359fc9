// A change of one member in the text of a JSON file that is otherwise kept byte for byte: numbers that
// no double holds, escapes and the order of keys stay as they are.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth {

/// `text`, an object, with this value of a member of the outermost object, which is added at the end
/// if it is not there. Input error, naming `source`, for a text that is no JSON object.
std::string with_member(const std::string& text, std::string_view key, const Json& value,
                        const std::string& source);

}  // namespace hearth
