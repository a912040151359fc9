#include "device/host_device.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/setting.h"
#include "device/budget.h"
#include "device/host_memory_device.h"
#include "device/host_stream.h"
#include "topology/memory_binding.h"

namespace hearth {
namespace {

class HostDevice final : public HostMemoryDevice {
 public:
  HostDevice(uint64_t budget, std::string name, int node)
      : name_(std::move(name)),
        node_(node),
        budget_(std::make_shared<Budget>(name_, "raise " + spelled(Setting::cpu_memory), budget)) {}

  const std::string& name() const override { return name_; }
  std::vector<MemorySpace> spaces() const override {
    return {{SpaceKind::host, std::max(node_, 0), budget_->bytes()}};
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space != SpaceKind::device, "host device: it has host memory only");
    auto reserved = std::make_unique<Arena>(arena, bytes, budget_->claim(arena, bytes));
    if (node_ >= 0 && bytes > 0 && !bind_memory(reserved->data(), bytes, node_)) {
      log_warning(name_ + ": the system does not bind memory to NUMA node " +
                  std::to_string(node_) + "; experts may read memory of another node");
    }
    return reserved;
  }

  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    auto claim =
        budget_->claim("scratch of stream " + options.name, HostStream::memory_bytes(options));
    return std::make_unique<HostStream>(options, std::move(claim));
  }

 private:
  const std::string name_;
  const int node_;
  std::shared_ptr<Budget> budget_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(uint64_t budget, std::string name, int node) {
  return std::make_unique<HostDevice>(budget, std::move(name), node);
}

}  // namespace hearth
