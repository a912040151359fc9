// Unpacks Snappy's raw format (format_description.txt of google/snappy).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// The `size` bytes that `packed` holds; nullopt if it is damaged or holds another number of bytes.
/// Allocates no more than 22 times the packed bytes: the densest that the format can be.
std::optional<std::string> unpack_snappy(std::string_view packed, size_t size);

}  // namespace hearth
