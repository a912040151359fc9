// What the system grants this process, as far as training needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

/// Huge pages of one size that the administrator has set aside.
struct HugePages {
  uint64_t bytes = 0;  // of a page
  uint64_t total = 0, free = 0;
};

struct MachineLimits {
  std::optional<uint64_t> locked_memory;  // bytes that may be locked; nothing: no limit
  std::optional<uint64_t> address_space;  // bytes; nothing: no limit
  std::optional<uint64_t> open_files;     // nothing: no limit
  std::vector<HugePages> huge_pages;      // by size
  std::string transparent_huge_pages;     // "always", "madvise", "never"; empty: unknown
};

/// Asks the system. Tests pass a directory as `root` that stands for "/".
MachineLimits read_machine_limits(const std::string& root = "");

}  // namespace hearth
