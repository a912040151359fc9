// Memory limits of Linux control groups.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// The lowest memory limit, in bytes, of this process's control groups (v2 or v1); 0 if none. Tests
/// pass a directory as `root` that stands for "/".
uint64_t control_group_memory_limit(const std::string& root = "");

}  // namespace hearth
