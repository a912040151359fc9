// Reading tokenizer.json strictly: what is not understood is named, never passed over.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"

namespace hearth {

/// A value as messages quote it; lists and objects only by their kind.
std::string shown(const Json& value);

/// Input error: `where` (file: path of a field) has a value that this version does not read.
[[noreturn]] void refuse_value(const std::string& where, const Json& value);

/// The member of an object; input error when there is none.
const Json& member(const Json& object, std::string_view key, const std::string& where);
/// The member, or null when absent.
const Json& member_or_null(const Json& object, std::string_view key);

/// Input error for a value that is no object, or has a key that is not listed.
void allow_keys(const Json& object, const std::string& where,
                std::initializer_list<std::string_view> keys);

// A member of that type; input error when it is of another. `absent`: what a missing one means.
bool read_bool(const Json& object, std::string_view key, bool absent, const std::string& where);
const std::string& read_string(const Json& object, std::string_view key, const std::string& where);
/// An integer in [0, 2^24): ids of tokens index tables.
int32_t read_id(const Json& value, const std::string& where);

}  // namespace hearth
