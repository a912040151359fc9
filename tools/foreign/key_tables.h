// The table of foreign keys, in two parts. Private to keys.cpp and the parts.
#pragma once

#include "foreign/keys.h"

namespace hearth {

using ForeignValues = std::vector<std::pair<std::string, std::string>>;

// Values that have no effect here, because this program always behaves so.
inline const ForeignValues kIfFalse{{"false", ""}, {"no", ""}, {"0", ""}, {"none", ""}};
inline const ForeignValues kIfTrue{{"true", ""}, {"yes", ""}};
inline const std::string kNoUpload =
    "nothing is uploaded; remove the key, and upload OUT/model yourself";
inline const std::string kReading =
    "rows are tokenized once, by all threads, and kept in the user's cache (data_cache)";

std::vector<ForeignKey> foreign_keys_of_data();  // model, trained parts, rows
std::vector<ForeignKey> foreign_keys_of_runs();  // batches, optimizer, memory, state, logs

}  // namespace hearth
