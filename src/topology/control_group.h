// Memory limits of Linux control groups.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// The lowest memory limit in bytes of the control groups (v2 or v1) this process is in, 0 if none.
/// `root` is the directory that stands for "/", for tests.
uint64_t control_group_memory_limit(const std::string& root = "");

}  // namespace hearth
