// Rates of links for people, in a unit that leaves them digits.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hearth {

struct RateUnit {
  const char* name = "GB/s";
  double bytes_per_s = 1e9;
};

/// The largest unit in which a rate is 1 or more; B/s at least.
inline RateUnit unit_of(double bytes_per_s) {
  if (bytes_per_s >= 1e9) return {"GB/s", 1e9};
  if (bytes_per_s >= 1e6) return {"MB/s", 1e6};
  return bytes_per_s >= 1e3 ? RateUnit{"kB/s", 1e3} : RateUnit{"B/s", 1};
}

/// "12.5", without the unit. Two rates side by side take the unit of the larger one.
inline std::string in_unit(double bytes_per_s, const RateUnit& unit) {
  return fmt::format("{:.1f}", bytes_per_s / unit.bytes_per_s);
}

}  // namespace hearth
