// Names of files that hold rows.
#pragma once

#include <string>

namespace hearth {

/// The endings of such names, for messages.
inline constexpr const char* kRowEndings = ".jsonl .ndjson .json .txt .csv .tsv .parquet";

/// Whether a name, without folders, has an ending that files of rows have, packed or not. Not those
/// of hidden files, and of what the datasets library keeps beside its files.
bool names_rows(std::string name);

}  // namespace hearth
