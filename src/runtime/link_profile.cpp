#include "runtime/link_profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error_format.h"
#include "base/stopwatch.h"

namespace hearth {
namespace {

constexpr uint64_t kLeastProfiled = uint64_t{1} << 20, kMostProfiled = uint64_t{16} << 20;
constexpr size_t kLatencyBytes = 64;  // bytes, of a copy that is all latency

/// Memory at both ends of a link, and a stream that copies.
struct LinkEnds {
  Device& device;
  bool in;
  size_t bytes;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> here, there;

  LinkEnds(Device& d, bool to_device, size_t n) : device(d), in(to_device), bytes(n) {
    StreamOptions options;
    options.name = "measurement";
    options.use = in ? StreamUse::copy_in : StreamUse::copy_out;
    stream = device.create_stream(options);
    here = device.reserve("measurement", SpaceKind::pinned, bytes);
    there = device.reserve("measurement", device.spaces().front().kind, bytes);
    std::memset(here->data(), 1, bytes);
  }

  double copy(size_t n) const {
    const Stopwatch watch;
    std::byte* const to = in ? there->data() : here->data();
    device.copy(*stream, to, in ? here->data() : there->data(), n);
    stream->synchronize();
    return watch.seconds();
  }
};

/// Of the memory at each end; an eighth of a device's at most.
size_t bytes_of_a_link(std::span<Device* const> devices, uint64_t max_bytes) {
  const size_t links = 2 * devices.size();
  uint64_t each = max_bytes / links;
  for (Device* device : devices) each = std::min(each, device->spaces().front().budget / 8);
  if (each < kLeastProfiled) {
    throw usage_error("measuring links needs {} bytes of memory at both ends of each, {} are free",
                      kLeastProfiled, each);
  }
  return static_cast<size_t>(std::min(each, kMostProfiled));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The median time of copies of `n` bytes in a time, of at least five.
double time_of(const LinkEnds& ends, size_t n, double seconds) {
  ends.copy(n);  // warms the link
  std::vector<double> times;
  for (const Stopwatch watch; times.size() < 5 || watch.seconds() < seconds;) {
    times.push_back(ends.copy(n));
    if (times.size() >= 1000) break;
  }
  return median(std::move(times));
}

CostLink alone(const LinkEnds& ends, double seconds) {
  CostLink link;
  const std::string& name = ends.device.name();
  link.link = ends.in ? "host->" + name : name + "->host";
  const auto rates = ends.device.link_rates();
  const LinkRate known = !rates ? LinkRate{} : ends.in ? rates->in : rates->out;
  link.latency_s = rates ? known.latency_s : time_of(ends, kLatencyBytes, seconds / 4);
  link.bytes_per_s = known.bytes_per_s;
  if (link.bytes_per_s > 0) return link;
  const double all = time_of(ends, ends.bytes, seconds);
  link.bytes_per_s = static_cast<double>(ends.bytes) / std::max(all - link.latency_s, all / 2);
  return link;
}

}  // namespace

struct BackgroundCopies::Lane {
  LinkEnds ends;
  std::atomic<uint64_t> carried{0};
  Lane(Device& device, bool in, size_t bytes) : ends(device, in, bytes) {}
};

BackgroundCopies::BackgroundCopies(std::span<Device* const> devices, uint64_t max_bytes) {
  if (devices.empty()) return;
  const size_t bytes = bytes_of_a_link(devices, max_bytes);
  for (Device* device : devices) {
    for (const bool in : {true, false}) {
      lanes_.push_back(std::make_unique<Lane>(*device, in, bytes));
    }
  }
  for (const auto& lane : lanes_) {
    threads_.emplace_back([this, &lane = *lane] {
      try {
        const size_t piece = static_cast<size_t>(std::min<uint64_t>(lane.ends.bytes, 4 << 20));
        while (!stop_) {
          lane.ends.copy(piece);
          lane.carried += piece;
        }
      } catch (const std::exception&) {  // the device fails, and says so to its next caller
      }
    });
  }
}

BackgroundCopies::~BackgroundCopies() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

std::vector<uint64_t> BackgroundCopies::carried() const {
  std::vector<uint64_t> bytes;
  for (const auto& lane : lanes_) bytes.push_back(lane->carried);
  return bytes;
}

std::vector<CostLink> measure_link_costs(std::span<Device* const> devices, double seconds,
                                         uint64_t max_bytes) {
  std::vector<CostLink> links;
  if (devices.empty()) return links;
  const size_t bytes = bytes_of_a_link(devices, max_bytes);
  const double each = seconds / 2 / static_cast<double>(2 * devices.size());
  for (Device* device : devices) {
    for (const bool in : {true, false}) links.push_back(alone(LinkEnds(*device, in, bytes), each));
  }
  // Rates are taken between two looks at the counters, when all copies are under way.
  const BackgroundCopies copies(devices, max_bytes);
  const auto wait = [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); };
  wait(seconds / 10);
  const std::vector<uint64_t> before = copies.carried();
  const Stopwatch watch;
  wait(seconds * 4 / 10);
  std::vector<uint64_t> after = copies.carried();
  double passed = watch.seconds();
  // A slow link may not have ended a copy yet.
  while (after != before && passed < 4 * seconds &&
         std::any_of(after.begin(), after.end(), [&](const uint64_t& n) {
           return n == before[static_cast<size_t>(&n - after.data())];
         })) {
    wait(seconds / 10);
    after = copies.carried();
    passed = watch.seconds();
  }
  for (size_t i = 0; i < links.size(); ++i) {
    const auto carried = static_cast<double>(after[i] - before[i]);
    links[i].together = carried > 0 ? std::min(carried / passed, links[i].bytes_per_s)
                                    : links[i].bytes_per_s / static_cast<double>(links.size());
  }
  return links;
}

}  // namespace hearth
