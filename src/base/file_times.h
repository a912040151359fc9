// What a cache needs beyond file_ops.h: when files were used, and a directory for one user.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// When the content last changed, in nanoseconds since 1970; 0 when the file is missing.
int64_t modified_time(const std::string& path);
/// Sets that time to now. False where it cannot be set (a directory that is only read).
bool touch_file(const std::string& path);
/// As make_directory, but what it makes is for its user alone.
void make_private_directory(const std::string& path);

}  // namespace hearth
