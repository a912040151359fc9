// Parses the value of --rank-devices: which ranks have other devices than --devices says. Starts
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// Ranks [first, last] and their devices, as a value of --devices.
struct RankDevices {
  int32_t first = 0, last = 0;
  std::string devices;
  friend bool operator==(const RankDevices&, const RankDevices&) = default;
};

/// Ranks are numbered below this.
inline constexpr int32_t kMostRanks = 1024;

/// Parses items separated by semicolons: `0=LIST` or `0-3=LIST`, with LIST as --devices has it. Each
/// rank once. Sorted by ranks. A usage error names the item and its fault, without the name of the
/// option. A path in a list has no semicolon.
std::vector<RankDevices> parse_rank_devices(std::string_view text);

/// "0-1=host;3=cuda:0", which parses to the same.
std::string text_of(const std::vector<RankDevices>& ranks);

/// The devices of a rank; `otherwise` if the list does not name it.
std::string devices_of(const std::vector<RankDevices>& ranks, int32_t rank,
                       const std::string& otherwise);

}  // namespace hearth
