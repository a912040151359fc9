// Recognises a checkpoint, an adapter, a saved state or a run directory.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

enum class DirectoryKind : uint8_t { checkpoint, adapter, saved_state, run };

/// Decides by the files in the directory, for a saved state also by its name. Input error if it is
/// none of these kinds, or not a directory.
DirectoryKind directory_kind(const std::string& path);

}  // namespace hearth
