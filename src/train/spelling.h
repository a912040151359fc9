// Another spelling of the same file is no change of an option.
#pragma once

#include "base/json.h"

namespace hearth {

/// The identity of a saved state in the spelling of the current run: where --model, --data, --eval-data,
/// --adapter or --chat-template names the same files by other paths (relative or absolute, through a
/// link, with a trailing slash), options and names of files become the current ones. Their content is
/// compared all the same. Everything else stays as it was saved.
Json in_current_spelling(const Json& saved, const Json& current);

}  // namespace hearth
