// What decides how a data file becomes tokens, as one digest: the key of its cached rows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/hash.h"
#include "data/rows/rows.h"

namespace hearth {

/// Of everything but the data: this program, the tokenizer files of the model, its template, and
/// those options that decide about ids and labels (not how long rows are cut, nor how many bad ones
/// are passed over).
Digest conversion_key(const RowOptions& options);

/// With the data: the bytes of the file, and how its name says to read them.
Digest row_key(const Digest& conversion, const Digest& content, const std::string& path);

/// The bytes of a file. `piece` is called with the bytes read so far.
Digest digest_of_file(const std::string& path, const std::function<void(uint64_t)>& piece);

}  // namespace hearth
