#include "device/virtual_device.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/pool.h"
#include "base/setting.h"
#include "device/budget.h"
#include "device/fabric.h"
#include "device/host_memory_device.h"
#include "device/host_stream.h"

namespace hearth {
namespace {

// Copies that share a link take turns by pieces. A copy waits for a piece of each other copy, so a
// piece takes a millisecond at most: even a small copy gets about the share that plan/fair_shares.h
// gives it.
constexpr size_t kMostPiece = size_t{1} << 20, kLeastPiece = size_t{4} << 10;
constexpr double kPieceSeconds = 1e-3;

size_t piece_of(const LinkPath& path) {
  const double bytes = path.bandwidth() * kPieceSeconds;
  if (bytes <= 0) return kMostPiece;
  return static_cast<size_t>(
      std::clamp(bytes, static_cast<double>(kLeastPiece), static_cast<double>(kMostPiece)));
}

class VirtualDevice final : public HostMemoryDevice {
 public:
  VirtualDevice(const VirtualOptions& options, LinkClock& clock)
      : options_(options),
        clock_(clock),
        fabric_(options.fabric ? options.fabric : std::make_shared<Fabric>()),
        number_(fabric_->add({links_of(options), options.root})),
        budget_(std::make_shared<Budget>(options.name,
                                         "raise mem= of the device in " + spelled(Setting::devices),
                                         options.memory)) {}

  const std::string& name() const override { return options_.name; }
  std::vector<MemorySpace> spaces() const override {
    return {{SpaceKind::device, 0, budget_->bytes()}};
  }

  std::optional<LinkRates> link_rates() const override {
    LinkRates rates = links_of(options_);
    rates.root = options_.root.get();
    if (rates.root == nullptr) return rates;
    rates.in.bytes_per_s = slower(rates.in.bytes_per_s, options_.root->in.bandwidth());
    rates.out.bytes_per_s = slower(rates.out.bytes_per_s, options_.root->out.bandwidth());
    return rates;
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space != SpaceKind::host, "virtual device: host memory of it is pinned");
    if (space == SpaceKind::pinned || bytes == 0) return std::make_unique<Arena>(arena, bytes);

    struct Memory {
      Arena pages;
      std::shared_ptr<Fabric> fabric;
      Memory(Arena p, std::shared_ptr<Fabric> f, int device)
          : pages(std::move(p)), fabric(std::move(f)) {
        fabric->memory().add(pages.data(), pages.size(), device);
      }
      ~Memory() { fabric->memory().remove(pages.data()); }
    };
    Arena pages(arena, bytes, budget_->claim(arena, bytes));
    pages.touch(Pool(std::max(1, workers()),
                     options_.cores));  // as memory of a device, there from the start
    const auto memory = std::make_shared<Memory>(std::move(pages), fabric_, number_);
    return std::make_unique<Arena>(arena, memory->pages.data(), bytes, memory);
  }

  std::unique_ptr<Stream> create_stream(const StreamOptions& asked) override {
    StreamOptions options = asked;
    if (asked.use == StreamUse::compute && workers() > 0) {
      options.cores = options_.cores;
      options.workers = workers();
    }
    auto claim =
        budget_->claim("scratch of stream " + options.name, HostStream::memory_bytes(options));
    return std::make_unique<HostStream>(options, std::move(claim));
  }

  void copy(Stream& stream, void* target, const void* source, size_t bytes) override {
    const MemoryMap& memory = fabric_->memory();
    const LinkPath path = fabric_->path(memory.owner(source, bytes), memory.owner(target, bytes));
    if (path.count == 0) return HostMemoryDevice::copy(stream, target, source, bytes);
    auto* to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    double at = clock_.now() + path.latency;
    if (path.latency > 0 && bytes > 0) clock_.sleep_until(at);  // until then others have the links
    const size_t piece = piece_of(path);
    for (size_t begin = 0; begin < bytes; begin += piece) {
      const size_t n = std::min(piece, bytes - begin);
      const double end = path.book(at, n);
      HostMemoryDevice::copy(stream, to + begin, from + begin, n);
      clock_.sleep_until(end);
      at = end;
    }
  }

 private:
  /// Of compute streams; 0: as they ask for.
  int workers() const {
    return options_.workers > 0 ? options_.workers : static_cast<int>(options_.cores.size());
  }
  static LinkRates links_of(const VirtualOptions& o) {
    return {{o.h2d, o.latency}, {o.d2h, o.d2h_latency < 0 ? o.latency : o.d2h_latency}};
  }
  /// Of two limits in bytes per second; 0: none.
  static double slower(double a, double b) {
    return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
  }

  const VirtualOptions options_;
  LinkClock& clock_;
  const std::shared_ptr<Fabric> fabric_;
  const int number_;  // in the fabric
  const std::shared_ptr<Budget> budget_;
};

}  // namespace

std::unique_ptr<Device> make_virtual_device(const VirtualOptions& options, LinkClock& clock) {
  return std::make_unique<VirtualDevice>(options, clock);
}

}  // namespace hearth
