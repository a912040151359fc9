#include "runtime/filled_memory.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/stopwatch.h"

namespace hearth {

uint64_t filled_in(double seconds) {
  constexpr size_t kBytes = size_t{16} << 20;
  const Stopwatch watch;
  const std::vector<std::byte> touched(kBytes, std::byte{1});
  const double took = std::max(watch.seconds(), 1e-6);
  return static_cast<uint64_t>(static_cast<double>(kBytes) / 2 * std::max(seconds, 0.0) / took);
}

}  // namespace hearth
