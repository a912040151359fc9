// Sizes of memory and files as people read them. The units are decimal, as on disks and in the
// options (`64GB`): kB, MB, GB and TB. Limits of file formats are powers of two, and their messages
// say MiB.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// With up to four digits: "78.16 GB", "52.6 MB", "1.5 kB", "12 bytes", "1 byte".
std::string size_text(uint64_t bytes);
/// The value of an option that allows at least so many bytes: "79M", and below 10 MB "333k".
std::string size_option(uint64_t bytes);

}  // namespace hearth
