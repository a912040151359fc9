#include "runtime/link_rates.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace hearth {

namespace {

// So much that latency does not count; no more than keeps the measurement short.
constexpr uint64_t kLeastBytes = uint64_t{1} << 20, kMostBytes = uint64_t{16} << 20;
constexpr size_t kSmall = 64;  // bytes, of a copy that is all latency
constexpr int kRuns = 4;       // the first warms the link

}  // namespace

LinkRates measure_links(Device& device, uint64_t max_bytes) {
  if (const auto known = device.link_rates()) return *known;
  const auto bytes = static_cast<size_t>(std::clamp(max_bytes, kLeastBytes, kMostBytes));
  StreamOptions options;
  options.name = "measurement";
  const auto stream = device.create_stream(options);
  const auto here = device.reserve("measurement", SpaceKind::pinned, bytes);
  const auto there = device.reserve("measurement", device.spaces().front().kind, bytes);
  const auto seconds = [&](std::byte* to, const std::byte* from, size_t n) {
    double best = 1e30;
    for (int i = 0; i < kRuns; ++i) {
      const Stopwatch watch;
      device.copy(*stream, to, from, n);
      stream->synchronize();
      best = std::min(best, watch.seconds());
    }
    return best;
  };
  const auto rate = [&](std::byte* to, const std::byte* from) {
    return LinkRate{static_cast<double>(bytes) / seconds(to, from, bytes),
                    seconds(to, from, kSmall)};
  };
  return {rate(there->data(), here->data()), rate(here->data(), there->data())};
}

}  // namespace hearth
