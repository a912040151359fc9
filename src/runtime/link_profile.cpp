#include "runtime/link_profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error_format.h"
#include "base/stopwatch.h"
#include "device/link.h"

namespace hearth {
namespace {

constexpr uint64_t kLeastProfiled = uint64_t{1} << 20, kMostProfiled = uint64_t{16} << 20;
constexpr size_t kLatencyBytes = 64;  // bytes, of a copy that is all latency
constexpr size_t kUsualPiece = size_t{4} << 20, kLeastPiece = size_t{64} << 10;
constexpr int64_t kLeastCopies = 4;  // of each link, for its rate beside others

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

double rate_together(const Carried& before, const Carried& after, const CostLink& alone,
                     size_t links) {
  const int64_t copies = after.copies - before.copies;
  if (before.copies == 0 || copies <= 0) return alone.bytes_per_s / static_cast<double>(links);
  const double all = std::max(after.at_s - before.at_s, 1e-9);
  const double waited = static_cast<double>(copies) * alone.latency_s;
  const double passed = std::max(all - waited, all / 2);
  return std::min(static_cast<double>(after.bytes - before.bytes) / passed, alone.bytes_per_s);
}

struct BackgroundCopies::Lane {
  LinkEnds ends;
  size_t piece;
  std::mutex mutex;
  Carried carried;  // guarded
  Lane(Device& device, bool in, size_t bytes, size_t most)
      : ends(device, in, bytes), piece(std::min(bytes, most)) {}

  void copy() {
    ends.copy(piece);
    const double now = steady_link_clock().now();
    const std::lock_guard lock(mutex);
    carried = {carried.bytes + piece, carried.copies + 1, now};
  }
};

BackgroundCopies::BackgroundCopies(std::span<Device* const> devices, uint64_t max_bytes,
                                   std::span<const size_t> pieces) {
  if (devices.empty()) return;
  const size_t bytes = bytes_of_a_link(devices, max_bytes);
  for (Device* device : devices) {
    for (const bool in : {true, false}) {
      const size_t piece = pieces.empty() ? kUsualPiece : pieces[lanes_.size()];
      lanes_.push_back(std::make_unique<Lane>(*device, in, bytes, piece));
    }
  }
  for (const auto& lane : lanes_) {
    threads_.emplace_back([this, &lane = *lane] {
      try {
        while (!stop_) lane.copy();
      } catch (const std::exception&) {  // the device fails, and says so to its next caller
      }
    });
  }
}

BackgroundCopies::~BackgroundCopies() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

std::vector<Carried> BackgroundCopies::carried() const {
  std::vector<Carried> all;
  for (const auto& lane : lanes_) {
    const std::lock_guard lock(lane->mutex);
    all.push_back(lane->carried);
  }
  return all;
}

namespace {

/// So small that some copies end in a time, even if all links share one root complex.
std::vector<size_t> pieces_for(std::span<const CostLink> links, double seconds) {
  const auto copies = static_cast<double>(2 * kLeastCopies) * static_cast<double>(links.size());
  std::vector<size_t> pieces;
  for (const CostLink& link : links) {
    const double most = std::min(link.bytes_per_s * seconds / copies, double{kUsualPiece});
    pieces.push_back(std::max(static_cast<size_t>(most), kLeastPiece));
  }
  return pieces;
}

/// Waits until each link has ended so many copies since then, but no longer than to a time.
std::vector<Carried> after_copies(const BackgroundCopies& copies, std::vector<Carried> since,
                                  int64_t count, double until) {
  for (;;) {
    std::vector<Carried> now = copies.carried();
    size_t ended = 0;
    for (size_t i = 0; i < now.size(); ++i) ended += now[i].copies - since[i].copies >= count;
    if (ended == now.size() || steady_link_clock().now() >= until) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::vector<CostLink> measure_link_costs(std::span<Device* const> devices, double seconds,
                                         uint64_t max_bytes) {
  std::vector<CostLink> links;
  if (devices.empty()) return links;
  const size_t bytes = bytes_of_a_link(devices, max_bytes);
  const double each = seconds / 2 / static_cast<double>(2 * devices.size());
  for (Device* device : devices) {
    for (const bool in : {true, false}) links.push_back(alone(LinkEnds(*device, in, bytes), each));
  }
  const double window = seconds * 4 / 10;
  const double until = steady_link_clock().now() + 4 * seconds;
  const BackgroundCopies copies(devices, max_bytes, pieces_for(links, window));
  // All copies are under way when each link has ended one.
  const std::vector<Carried> before =
      after_copies(copies, std::vector<Carried>(links.size()), 1, until);
  std::this_thread::sleep_for(std::chrono::duration<double>(window));
  const std::vector<Carried> after = after_copies(copies, before, kLeastCopies, until);
  for (size_t i = 0; i < links.size(); ++i) {
    links[i].together = rate_together(before[i], after[i], links[i], links.size());
  }
  return links;
}

}  // namespace hearth
