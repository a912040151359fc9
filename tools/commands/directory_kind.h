// What a directory is: a checkpoint, an adapter, a saved state or a run directory.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

enum class DirectoryKind : uint8_t { checkpoint, adapter, saved_state, run };

/// By the files in it; input error when it is none of them, or no directory.
DirectoryKind directory_kind(const std::string& path);

}  // namespace hearth
