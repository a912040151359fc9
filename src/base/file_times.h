// File operations that only caches need: times, owners, and a directory for one user.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// When the content last changed, in nanoseconds since 1970; 0 if the file is missing.
int64_t modified_time(const std::string& path);
/// Sets that time to now. Returns false if it cannot (a read-only directory).
bool touch_file(const std::string& path);
/// Whether the path is a regular file of this user, and no link.
bool is_own_file(const std::string& path);
/// Like make_directory, but only this user can access the directories that it creates.
void make_private_directory(const std::string& path);

}  // namespace hearth
