#include "device/virtual_device.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/pool.h"
#include "base/setting.h"
#include "device/budget.h"
#include "device/host_memory_device.h"
#include "device/host_stream.h"
#include "device/memory_map.h"

namespace hearth {
namespace {

// Copies that share a link take turns by pieces.
constexpr size_t kPiece = size_t{1} << 20;

class VirtualDevice final : public HostMemoryDevice {
 public:
  VirtualDevice(const VirtualOptions& options, LinkClock& clock)
      : options_(options),
        clock_(clock),
        in_(options.h2d),
        out_(options.d2h),
        budget_(std::make_shared<Budget>(options.name,
                                         "raise mem= of the device in " + spelled(Setting::devices),
                                         options.memory)) {}

  const std::string& name() const override { return options_.name; }
  std::vector<MemorySpace> spaces() const override {
    return {{SpaceKind::device, 0, budget_->bytes()}};
  }

  std::optional<LinkRates> link_rates() const override {
    const RootComplex* root = options_.root.get();
    return LinkRates{rate_of(in_, root == nullptr ? nullptr : &root->in, latency(true)),
                     rate_of(out_, root == nullptr ? nullptr : &root->out, latency(false))};
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space != SpaceKind::host, "virtual device: host memory of it is pinned");
    if (space == SpaceKind::pinned || bytes == 0) return std::make_unique<Arena>(arena, bytes);

    struct Memory {
      Arena pages;
      std::shared_ptr<MemoryMap> map;
      Memory(Arena p, std::shared_ptr<MemoryMap> m) : pages(std::move(p)), map(std::move(m)) {
        map->add(pages.data(), pages.size(), 0);
      }
      ~Memory() { map->remove(pages.data()); }
    };
    Arena pages(arena, bytes, budget_->claim(arena, bytes));
    const int workers = std::max(1, static_cast<int>(options_.cores.size()));
    pages.touch(Pool(workers, options_.cores));  // as memory of a device, there from the start
    const auto memory = std::make_shared<Memory>(std::move(pages), map_);
    return std::make_unique<Arena>(arena, memory->pages.data(), bytes, memory);
  }

  std::unique_ptr<Stream> create_stream(const StreamOptions& asked) override {
    StreamOptions options = asked;
    if (asked.use == StreamUse::compute && !options_.cores.empty()) {
      options.cores = options_.cores;
      options.workers = static_cast<int>(options_.cores.size());
    }
    auto claim =
        budget_->claim("scratch of stream " + options.name, HostStream::memory_bytes(options));
    return std::make_unique<HostStream>(options, std::move(claim));
  }

  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    const bool in = map_->owner(target, bytes) >= 0;
    if (in == (map_->owner(source, bytes) >= 0)) {  // within the device, or within the host
      return HostMemoryDevice::copy(stream, target, source, bytes);
    }
    Link& link = in ? in_ : out_;
    Link* shared = options_.root == nullptr ? nullptr
                   : in                     ? &options_.root->in
                                            : &options_.root->out;
    auto* to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    double at = clock_.now() + latency(in);
    for (size_t begin = 0; begin < bytes; begin += kPiece) {
      const size_t n = std::min(kPiece, bytes - begin);
      const double end = std::max(link.book(at, n), shared != nullptr ? shared->book(at, n) : at);
      HostMemoryDevice::copy(stream, to + begin, from + begin, n);
      clock_.sleep_until(end);
      at = end;
    }
  }

 private:
  double latency(bool in) const {
    return in || options_.d2h_latency < 0 ? options_.latency : options_.d2h_latency;
  }
  /// Of a link that has `shared`, where there is one, to itself.
  LinkRate rate_of(const Link& link, const Link* shared, double latency) const {
    double rate = link.bandwidth();
    const double most = shared == nullptr ? 0 : shared->bandwidth();
    if (most > 0) rate = rate > 0 ? std::min(rate, most) : most;
    return {rate, latency};
  }

  const VirtualOptions options_;
  LinkClock& clock_;
  Link in_, out_;
  const std::shared_ptr<Budget> budget_;
  const std::shared_ptr<MemoryMap> map_ = std::make_shared<MemoryMap>();
};

}  // namespace

std::unique_ptr<Device> make_virtual_device(const VirtualOptions& options, LinkClock& clock) {
  return std::make_unique<VirtualDevice>(options, clock);
}

}  // namespace hearth
