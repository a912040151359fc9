#include "device/host_device.h"

#include "base/error.h"
#include "base/setting.h"
#include "device/budget.h"
#include "device/host_memory_device.h"
#include "device/host_stream.h"

namespace hearth {
namespace {

class HostDevice final : public HostMemoryDevice {
 public:
  explicit HostDevice(uint64_t budget)
      : budget_(std::make_shared<Budget>(name_, "raise " + spelled(Setting::cpu_memory), budget)) {}

  const std::string& name() const override { return name_; }
  std::vector<MemorySpace> spaces() const override {
    return {{SpaceKind::host, 0, budget_->bytes()}};
  }

  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    HEARTH_CHECK(space != SpaceKind::device, "host device: it has host memory only");
    return std::make_unique<Arena>(arena, bytes, budget_->claim(arena, bytes));
  }

  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    auto claim =
        budget_->claim("scratch of stream " + options.name, HostStream::memory_bytes(options));
    return std::make_unique<HostStream>(options, std::move(claim));
  }

 private:
  std::string name_ = "host";
  std::shared_ptr<Budget> budget_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(uint64_t budget) {
  return std::make_unique<HostDevice>(budget);
}

}  // namespace hearth
