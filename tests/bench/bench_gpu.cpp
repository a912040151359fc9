// bench_gpu [--device N] [--only copy|rows|products|attention|moe] [--rehearse]: rates of the GPU's
// op set, one line of JSON a measurement; docs/benchmarks/gpu.md says what each is held against.
// Exit code 3 and one line where there is no GPU. --rehearse runs tiny shapes on the CPU, to see that
// the program works; its rates say nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "cpu_kernels/cpu_ops.h"
#include "device/cuda_device.h"
#include "device/cuda_runtime.h"
#include "device/host_device.h"
#include "gpu_bench.h"
#include "gpu_kernels/cuda_ops.h"
#include "ops/registry.h"

using namespace hearth;
using namespace hearth::bench;

namespace {

constexpr int kNoGpu = 3;

struct Options {
  int device = 0;
  std::string only;
  bool rehearse = false;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--rehearse") {
      options.rehearse = true;
    } else if (name == "--device" && i + 1 < argc) {
      options.device = std::atoi(argv[++i]);
    } else if (name == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: bench_gpu [--device N] [--only GROUP] [--rehearse]\n");
      return false;
    }
  }
  return true;
}

void run(GpuTarget target, const Options& options) {
  const auto wanted = [&](const char* group) {
    return options.only.empty() || options.only == group;
  };
  target.copy_rate = measure_copy(target);  // what others are shares of
  if (wanted("rows")) bench_rows(target);
  if (wanted("products")) bench_products(target);
  if (wanted("attention")) bench_attention(target);
  if (wanted("moe")) bench_moe_layer(target);
}

int run_on_gpu(const Options& options) {
  std::string why_not;
  CudaCalls* calls = cuda_calls(why_not);
  if (why_not.empty()) why_not = register_cuda_ops();
  if (!why_not.empty()) {
    std::fprintf(stderr, "bench_gpu: nothing measured: %s\n", why_not.c_str());
    return kNoGpu;
  }
  CudaDeviceInfo info;
  if (calls->device_info(options.device, &info) == kCudaOk) {
    std::printf("{\"device\": \"%s\", \"sm\": %d, \"processors\": %d, \"memory_bytes\": %zu}\n",
                info.model.c_str(), info.major * 10 + info.minor, info.processors,
                info.memory_bytes);
  }
  CudaDeviceOptions chosen;
  chosen.number = options.device;
  const CudaDevices devices = make_cuda_devices(*calls, std::vector{chosen});
  run({*devices.devices.front(), find_op_set("cuda")}, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return 2;
  try {
    if (!options.rehearse) return run_on_gpu(options);
    const auto host = make_host_device(uint64_t{1} << 30);
    run({*host, cpu_ops(), true}, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu: %s\n", error.what());
    return 1;
  }
}
