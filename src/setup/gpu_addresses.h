// Which GPUs a list of devices names, before any of them is started.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hearth {

struct GpuAddress {
  std::string name;     // "cuda:1"
  std::string address;  // of PCI, which is one for all processes of a host
  friend bool operator==(const GpuAddress&, const GpuAddress&) = default;
};

/// Of a value of --devices. Without those that are not there, which are refused when they are started.
std::vector<GpuAddress> gpu_addresses(const std::string& devices);
/// Whether such a value names one of them and nothing else.
bool is_one_gpu(const std::string& devices);

/// A GPU that two ranks on one host would compute with.
struct SharedGpu {
  int rank = 0, other = 0;  // other < rank
  GpuAddress gpu;           // as `rank` names it
};

/// The first rank that has the GPU of one before it. Both arguments are by rank.
std::optional<SharedGpu> find_shared_gpu(const std::vector<std::string>& hosts,
                                         const std::vector<std::vector<GpuAddress>>& gpus);

}  // namespace hearth
