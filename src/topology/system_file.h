// Files of /proc and /sys.
#pragma once

#include <string>

namespace hearth {

/// The content of a file of /proc or /sys; empty if it cannot be read. Such files are small and
/// have the size 0 to stat. (Not for files on disks: src/base/file_ops.h is.)
std::string read_system_file(const std::string& path);

/// The same without spaces and line breaks at the end.
std::string read_system_line(const std::string& path);

}  // namespace hearth
