// Reads and checks the fields of a row's JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/rows/rows.h"

namespace hearth {

/// What a row must have: all that training needs, or no more than a prompt, without its answer.
enum class RowPart : uint8_t { whole, prompt };

/// The format of a row by its keys; null members do not count. BadRow if no format or several fit.
/// `where` is FILE:LINE.
RowFormat detect_format(const Json& row, const std::string& where, RowPart part = RowPart::whole);

/// Whether prompt and completion are lists of messages, not strings. Both must be of one kind.
bool completion_is_chat(const Json& row, const std::string& where);

/// The member, which must be a string.
const std::string& read_text(const Json& row, const char* field, const std::string& where);

/// Reads input_ids and labels (default: the ids). Ids must be in [0, vocabulary), or below 2^31 if
/// `vocabulary` is 0. So must labels, unless they are kIgnoredLabel.
void read_tokens(const Json& row, int64_t vocabulary, const std::string& where,
                 std::vector<int32_t>& ids, std::vector<int32_t>& labels);

}  // namespace hearth
