#include "support/test_gpu.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdlib>
#include <memory_resource>
#include <vector>

#include "device/cuda_device.h"
#include "device/cuda_runtime.h"
#include "gpu_kernels/cuda_ops.h"
#include "support/all_op_sets.h"

namespace hearth::test {
namespace {

/// Pinned arenas that live until the program ends.
class PinnedMemory final : public std::pmr::memory_resource {
 public:
  explicit PinnedMemory(Device& device) : device_(device) {}

 private:
  void* do_allocate(size_t bytes, size_t) override {
    arenas_.push_back(device_.reserve("tensors of tests", SpaceKind::pinned, bytes));
    return arenas_.back()->data();
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Device& device_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

struct Gpu {
  std::string why_not;
  CudaDevices devices;

  Gpu() {
    // The runtime reads it when it starts, which is now.
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    CudaCalls* const calls = cuda_calls(why_not);
    if (calls == nullptr) return;
    why_not = register_cuda_ops();
    if (!why_not.empty()) return;
    devices = make_cuda_devices(*calls, std::vector<CudaDeviceOptions>{{}});
    // Neither is ever destroyed: tensors may be as late as anything.
    auto* const pinned = new PinnedMemory(*devices.devices.front());
    std::pmr::set_default_resource(new std::pmr::synchronized_pool_resource(pinned));
  }
};

Gpu& gpu() {
  static Gpu* const found = new Gpu;
  return *found;
}

/// Before the first tensor of the first test.
class Start final : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override { register_all_op_sets(); }
};
CATCH_REGISTER_LISTENER(Start)

}  // namespace

const std::string& register_gpu() { return gpu().why_not; }

Device* test_gpu() {
  const auto& devices = gpu().devices.devices;
  return devices.empty() ? nullptr : devices.front().get();
}

}  // namespace hearth::test

TEST_CASE("back ends: cuda, where there is a GPU") {
  using namespace hearth;
  const std::string& why_not = test::register_gpu();
  if (!why_not.empty()) SKIP("no CUDA device: " + why_not);
  CHECK(find_op_set("cuda").supports(DType::f32, Compute::bf16));
  CHECK(test::test_gpu() != nullptr);
}
