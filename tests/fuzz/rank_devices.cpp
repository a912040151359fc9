// Any text is refused with a usage error of one line, or read to ranks that are named once, each with a
// list that --devices takes; and what is read is written as it was read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "device/device_list.h"
#include "device/rank_devices.h"
#include "support/bounded.h"

namespace {

using namespace hearth;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_one_line(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return !text.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<RankDevices> ranks;
  try {
    const test::Bounded bound(size, {.times = 256});
    ranks = parse_rank_devices(text);
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && is_one_line(error.what()));
    return 0;
  }
  require(!ranks.empty());
  int32_t next = 0;
  for (const RankDevices& of : ranks) {
    require(next <= of.first && of.first <= of.last && of.last < kMostRanks);
    next = of.last + 1;
    parse_device_list(of.devices);
    require(devices_of(ranks, of.first, "other") == of.devices);
    require(devices_of(ranks, of.last, "other") == of.devices);
  }
  require(devices_of(ranks, next, "other") == "other");
  require(parse_rank_devices(text_of(ranks)) == ranks);
  return 0;
}
