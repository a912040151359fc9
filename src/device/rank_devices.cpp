#include "device/rank_devices.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/numbers.h"
#include "device/device_list.h"

namespace hearth {
namespace {

[[noreturn]] void refuse(std::string_view item, const std::string& what) {
  throw usage_error("{}: {}", quoted(item), what);
}

int32_t rank_in(std::string_view text, std::string_view item) {
  const auto rank = parse_count(text);
  if (!rank || *rank < 0 || *rank >= kMostRanks) {
    refuse(item, "expected RANK=LIST or FIRST-LAST=LIST with ranks from 0 to " +
                     std::to_string(kMostRanks - 1));
  }
  return static_cast<int32_t>(*rank);
}

RankDevices read_item(std::string_view item) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    refuse(item, "expected RANK=LIST or FIRST-LAST=LIST, such as 0-1=cuda:0");
  }
  const std::string_view ranks = item.substr(0, equals);
  const size_t dash = ranks.find('-');
  RankDevices of;
  of.first = rank_in(ranks.substr(0, dash), item);
  of.last = dash == std::string_view::npos ? of.first : rank_in(ranks.substr(dash + 1), item);
  if (of.last < of.first) refuse(item, "the last rank is before the first");
  of.devices = item.substr(equals + 1);
  try {
    parse_device_list(of.devices);
  } catch (const Error& error) {
    refuse(item, error.what());
  }
  return of;
}

}  // namespace

std::vector<RankDevices> parse_rank_devices(std::string_view text) {
  std::vector<RankDevices> ranks;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    ranks.push_back(read_item(item));
    if (ranks.size() > kMostRanks) refuse(item, "more items than there may be ranks");
    begin = end + 1;
  }
  std::ranges::sort(ranks, {}, &RankDevices::first);
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].first <= ranks[i - 1].last) {
      throw usage_error("rank {} is named twice", ranks[i].first);
    }
  }
  return ranks;
}

std::string text_of(const std::vector<RankDevices>& ranks) {
  std::string text;
  for (const RankDevices& of : ranks) {
    text += (text.empty() ? "" : ";") + std::to_string(of.first);
    if (of.last > of.first) text += "-" + std::to_string(of.last);
    text += "=" + of.devices;
  }
  return text;
}

std::string devices_of(const std::vector<RankDevices>& ranks, int32_t rank,
                       const std::string& otherwise) {
  for (const RankDevices& of : ranks) {
    if (of.first <= rank && rank <= of.last) return of.devices;
  }
  return otherwise;
}

}  // namespace hearth
