// The key of cached rows: a digest of everything that determines them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/hash.h"
#include "data/rows/rows.h"

namespace hearth {

/// Digest of everything except the data: this program, the model's tokenizer files and template,
/// and the options that determine ids and labels. Ignores the cut length and skip_bad_rows.
Digest conversion_key(const RowOptions& options);

/// Adds the digest of the file's bytes, and the format that its name implies.
Digest row_key(const Digest& conversion, const Digest& content, const std::string& path);

/// Digest of a file's bytes. Calls `piece` with the bytes read so far.
Digest digest_of_file(const std::string& path, const std::function<void(uint64_t)>& piece);

}  // namespace hearth
