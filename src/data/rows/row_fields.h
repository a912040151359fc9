// What a row says, before it is tokens: the fields of JSON objects, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/rows/rows.h"

namespace hearth {

/// The format of a row by its keys (a null is no key). Input error when it is of none, of several,
/// or of one that this version does not read. `where` is FILE:LINE.
RowFormat detect_format(const Json& row, const std::string& where);

/// The member `text`.
const std::string& read_text(const Json& row, const std::string& where);

/// The members input_ids and labels (absent: the ids). Ids lie in [0, vocabulary), or below 2^31
/// where it is 0; labels there too, or are kIgnoredLabel.
void read_tokens(const Json& row, int64_t vocabulary, const std::string& where,
                 std::vector<int32_t>& ids, std::vector<int32_t>& labels);

}  // namespace hearth
