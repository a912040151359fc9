// Strict reading of JSON fields: names what it does not understand, never ignores it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth {

/// A value as error messages quote it; for lists and objects, only the kind.
std::string shown(const Json& value);

/// Throws an input error: the value at `where` (file: path of a field) is not supported.
[[noreturn]] void refuse_value(const std::string& where, const Json& value);

/// The member of an object; input error if it is missing.
const Json& member(const Json& object, std::string_view key, const std::string& where);
/// The member, or null if it is missing.
const Json& member_or_null(const Json& object, std::string_view key);

/// Input error if the value is not an object, or has a key that is not listed.
void allow_keys(const Json& object, const std::string& where,
                std::initializer_list<std::string_view> keys);

// A member of this type; input error for another type. `absent`: the value of a missing member.
bool read_bool(const Json& object, std::string_view key, bool absent, const std::string& where);
/// The same of one that must be there.
bool required_bool(const Json& object, std::string_view key, const std::string& where);
const std::string& read_string(const Json& object, std::string_view key, const std::string& where);
/// A text of one character.
std::string read_character(const Json& object, std::string_view key, const std::string& where);
/// An integer in [0, 2^24), bounded because token ids index tables.
int32_t read_id(const Json& value, const std::string& where);

}  // namespace hearth
