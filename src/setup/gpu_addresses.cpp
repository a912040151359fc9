#include "setup/gpu_addresses.h"

#include <algorithm>

namespace hearth {

std::optional<SharedGpu> find_shared_gpu(const std::vector<std::string>& hosts,
                                         const std::vector<std::vector<GpuAddress>>& gpus) {
  for (size_t rank = 1; rank < gpus.size(); ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      if (hosts[rank] != hosts[other]) continue;
      for (const GpuAddress& gpu : gpus[rank]) {
        const auto same = std::ranges::find(gpus[other], gpu.address, &GpuAddress::address);
        if (same == gpus[other].end()) continue;
        return SharedGpu{static_cast<int>(rank), static_cast<int>(other), gpu};
      }
    }
  }
  return std::nullopt;
}

}  // namespace hearth
