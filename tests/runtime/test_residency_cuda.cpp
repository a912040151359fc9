// Residency on a device whose work runs beside the host: a fake GPU that runs queued work as late as
// it can, or in any order that events allow.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "device/cuda_device.h"
#include "device/cuda_stream.h"
#include "runtime/residency_homes.h"
#include "support/fake_cuda.h"
#include "support/raises.h"

namespace hearth::test {
namespace {

struct ResidencyGpu {
  explicit ResidencyGpu(uint64_t seed) : cuda({.seed = seed}) {
    const CudaDeviceOptions options;
    made = make_cuda_devices(cuda, std::span(&options, 1));
  }
  Device& device() { return *made.devices[0]; }

  FakeCuda cuda;
  CudaDevices made;
};

/// Kernels that check the weights of a lease, and check and add to its gradients, when they run.
void launch(const ResidencyHomes& homes, const Residency& residency, const Lease& lease,
            Stream& stream, std::vector<float>& added, std::atomic<int>& faults) {
  for (const LeasedBlock& block : lease.blocks) {
    const float before = added[static_cast<size_t>(block.block)];
    if (block.gradient != nullptr) ++added[static_cast<size_t>(block.block)];
    const auto kernel = [&homes, &residency, &faults, block, before] {
      if (!homes.has_weights(residency.weights(block.block), block.weights)) ++faults;
      if (block.gradient == nullptr) return;
      const SlotLayout& layout = residency.gradient(block.block);
      if (!ResidencyHomes::is_all(layout, block.gradient, before)) ++faults;
      ResidencyHomes::add(layout, block.gradient, 1);
    };
    REQUIRE(enqueue_on_fake_stream(cuda_stream(stream).handle(), kernel) == kCudaOk);
  }
}

TEST_CASE("residency: loads and accumulators beside the work of a GPU", "[residency]") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    const bool refuses = seed % 3 == 2;
    std::vector<std::string> warnings;
    set_warning_sink([&](const std::string& message) { warnings.push_back(message); });
    ResidencyGpu gpu(seed);
    ResidencyHomes homes({.experts = 6, .hidden = 32, .width = 16});
    const SlotPlan plan = homes.plan(4, 4, 1000);
    if (refuses) gpu.cuda.fail_call("host_register", kCudaOutOfMemory, 2);
    std::optional<PinnedHomes> pinned;
    pinned.emplace(gpu.device(), Residency::home_memory(homes.table, plan),
                   PinnedHomes::Options{.piece_bytes = 4096, .threads = 2});
    CHECK((pinned->pinned_bytes() < pinned->bytes()) == refuses);
    CHECK(warnings.size() == (refuses ? 1u : 0u));
    set_warning_sink({});
    {
      Residency residency(gpu.device(), homes.table, plan, *pinned);
      const auto stream = gpu.device().create_stream({});
      std::vector<float> added(homes.experts.size());
      std::atomic<int> faults{0};
      const Random random(seed, RandomSite::shuffle, 3);
      for (uint64_t i = 0; i < 40; ++i) {
        const auto first = static_cast<BlockId>(random.below(4 * i, 6));
        const auto second = static_cast<BlockId>((first + 1 + random.below(4 * i + 1, 5)) % 6);
        const BlockId blocks[] = {first, second};
        if (random.below(4 * i + 3, 6) == 0) {
          residency.bring_home(first, first + 1)->synchronize();
          CHECK(homes.gradient_is(first, added[static_cast<size_t>(first)]));
          residency.begin_change(first, first + 1, HomeChange::updated);
          homes.update(first);
          residency.changed(first, first + 1, HomeChange::updated);
          added[static_cast<size_t>(first)] = 0;
        }
        const Lease lease = residency.lease(blocks, random.below(4 * i + 2, 2) == 0);
        residency.wait(lease, *stream);
        launch(homes, residency, lease, *stream, added, faults);
        residency.release(lease, *stream);
      }
      residency.bring_home(0, 6)->synchronize();
      for (const BlockId block : homes.experts) {
        CHECK(homes.gradient_is(block, added[static_cast<size_t>(block)]));
      }
      CHECK(faults == 0);
      CHECK(residency.counts().evictions > 0);
    }
    pinned.reset();
    CHECK(gpu.cuda.unpinned_copies() == 0);
    CHECK(gpu.cuda.pinned_bytes() == 0);
  }
}

TEST_CASE("residency: work of a GPU that fails ends all leases", "[residency]") {
  for (int nth = 1; nth < 40; nth += 3) {
    ResidencyGpu gpu(0);
    ResidencyHomes homes({.experts = 6, .hidden = 32, .width = 16});
    const SlotPlan plan = homes.plan(2, 2, 1000);
    const PinnedHomes pinned(gpu.device(), Residency::home_memory(homes.table, plan));
    Residency residency(gpu.device(), homes.table, plan, pinned);
    const auto stream = gpu.device().create_stream({});
    gpu.cuda.fail_work(719, nth);
    const Raised raised = raised_by([&] {
      for (int i = 0; i < 1000; ++i) {
        const auto block = static_cast<BlockId>(i % 6);
        const Lease lease = residency.lease(std::span(&block, 1), true);
        residency.wait(lease, *stream);
        residency.release(lease, *stream);
      }
    });
    CHECK(raised.code == ExitCode::device);
    CHECK(raised.says("cuda:0"));
  }
}

}  // namespace
}  // namespace hearth::test
