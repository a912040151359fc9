#include <catch2/catch_test_macros.hpp>

#include "setup/gpu_addresses.h"
#include "setup/run_devices.h"
#include "support/fake_cuda.h"

namespace hearth::test {

TEST_CASE("gpus of ranks: two ranks on a host have no GPU together") {
  const GpuAddress first{"cuda:0", "0000:01:00.0"}, second{"cuda:1", "0000:02:00.0"};
  const GpuAddress hidden{"cuda:0", "0000:02:00.0"};  // the first that this process sees
  CHECK(!find_shared_gpu({"a", "a", "b"}, {{first}, {second}, {first}}));
  CHECK(!find_shared_gpu({"a", "a"}, {{first}, {hidden}}));
  CHECK(!find_shared_gpu({"a", "a"}, {{}, {}}));
  const auto found =
      find_shared_gpu({"b", "a", "a", "a"}, {{second}, {first, second}, {}, {hidden}});
  REQUIRE(found);
  CHECK(found->rank == 3);
  CHECK(found->other == 1);
  CHECK(found->gpu == hidden);
}

TEST_CASE("gpus of ranks: those of a list\\, by their PCI address") {
  FakeCudaOptions options;
  options.devices = 3;
  options.bus_ids = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"};
  static FakeCuda* fake = nullptr;
  FakeCuda cuda(options);
  fake = &cuda;
  CudaBackEnd back_end;
  back_end.calls = [](std::string&) -> CudaCalls* { return fake; };
  set_cuda_back_end(back_end);
  using Gpus = std::vector<GpuAddress>;
  CHECK(gpu_addresses("cuda:2,cuda:0,host") ==
        Gpus{{"cuda:2", "0000:03:00.0"}, {"cuda:0", "0000:01:00.0"}});
  CHECK(gpu_addresses("cuda:7") == Gpus{});  // refused when it is started
  CHECK(gpu_addresses("virtual:mem=1G,host") == Gpus{});
  CHECK(is_one_gpu("cuda:2"));
  for (const char* const other :
       {"cuda:2,host", "cuda:0,cuda:1", "cuda:7", "virtual:mem=1G", "host"}) {
    INFO(other);
    CHECK_FALSE(is_one_gpu(other));
  }
  CHECK(cuda.count("start_device") == 0);
  set_cuda_back_end({});
  CHECK(gpu_addresses("cuda:0") == Gpus{});
}

}  // namespace hearth::test
