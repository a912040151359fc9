#include "comm/device_world.h"

#include <cstdlib>
#include <string_view>

#include "base/error_format.h"
#include "comm/checking_world.h"
#include "comm/nccl_world.h"

namespace hearth {

namespace {

/// Messages of other ranks reach the memory of the device, as they reach the host's.
class ReachedMemory final : public World {
 public:
  explicit ReachedMemory(World& hosts) : World(hosts.rank(), hosts.size()), hosts_(hosts) {}

  const std::string& host(int32_t rank) const override { return hosts_.host(rank); }
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    return hosts_.host_group(ranks);
  }
  std::unique_ptr<Communicator> host_group(std::span<const int32_t> ranks) override {
    return hosts_.host_group(ranks);
  }
  PeerError fail(const Error& error) override { return hosts_.fail(error); }
  void beat() override { hosts_.beat(); }
  void watch(double silence_s) override { hosts_.watch(silence_s); }
  void set_away(bool away) override { hosts_.set_away(away); }

 private:
  World& hosts_;
};

}  // namespace

std::string why_no_gpu_messages() {
  const char* const wanted = std::getenv("HEARTH_NCCL");
  if (wanted != nullptr && std::string_view(wanted) == "OFF") return "HEARTH_NCCL is OFF";
  std::string why_not;
  nccl_calls(why_not);
  return why_not;
}

std::unique_ptr<World> make_device_world(World& hosts, Device& device) {
  if (device.host_reaches()) return make_checking_world(std::make_unique<ReachedMemory>(hosts));
  std::string why_not;
  NcclCalls* const calls = nccl_calls(why_not);
  if (calls == nullptr) throw device_error("{}: NCCL: {}", device.name(), why_not);
  return make_checking_world(make_nccl_world(hosts, device, *calls));
}

}  // namespace hearth
