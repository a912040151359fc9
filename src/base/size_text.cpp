#include "base/size_text.h"

#include <fmt/core.h>

#include "base/counted.h"

namespace hearth {

std::string size_text(uint64_t bytes) {
  if (bytes < 1000) return counted(static_cast<int64_t>(bytes), "byte");
  const char* const units[] = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1e3;
  size_t unit = 0;
  // 999.95 would be rounded to 1000, four digits before the point.
  while (value >= 999.95 && unit < 3) value /= 1000, ++unit;
  if (value >= 9999.5) return fmt::format("{:.0f} {}", value, units[unit]);
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string size_option(uint64_t bytes) {
  // Of few megabytes the next whole one may be far away.
  const bool few = bytes < 10'000'000 && bytes % 1'000'000 > 0;
  const uint64_t unit = few ? 1'000 : 1'000'000;
  return fmt::format("{}{}", bytes / unit + (bytes % unit > 0 ? 1 : 0), few ? "k" : "M");
}

}  // namespace hearth
