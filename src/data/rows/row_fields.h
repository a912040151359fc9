// What a row says, before it is tokens: the fields of JSON objects, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/rows/rows.h"

namespace hearth {

/// The format of a row by its keys (a null is no key). Input error when it is of none or of several.
/// `where` is FILE:LINE.
RowFormat detect_format(const Json& row, const std::string& where);

/// Whether a row of prompt and completion has lists of messages, not strings; both must be alike.
bool completion_is_chat(const Json& row, const std::string& where);

/// A member that is a string.
const std::string& read_text(const Json& row, const char* field, const std::string& where);

/// The members input_ids and labels (absent: the ids). Ids lie in [0, vocabulary), or below 2^31
/// where it is 0; labels there too, or are kIgnoredLabel.
void read_tokens(const Json& row, int64_t vocabulary, const std::string& where,
                 std::vector<int32_t>& ids, std::vector<int32_t>& labels);

}  // namespace hearth
