#include "doctor/machine_limits.h"

#include <sys/resource.h>

#include "base/numbers.h"
#include "topology/system_file.h"

namespace hearth {
namespace {

std::optional<uint64_t> limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return 0;
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

uint64_t number_in(const std::string& path) {
  return parse_seed(read_system_line(path)).value_or(0);
}

// The word in brackets: "always [madvise] never".
std::string chosen_of(const std::string& line) {
  const size_t begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace

MachineLimits read_machine_limits(const std::string& root) {
  MachineLimits limits;
  limits.locked_memory = limit_of(RLIMIT_MEMLOCK);
  limits.address_space = limit_of(RLIMIT_AS);
  limits.open_files = limit_of(RLIMIT_NOFILE);
  const std::string memory = root + "/sys/kernel/mm/";
  for (uint64_t bytes = 1 << 16; bytes <= uint64_t{1} << 35; bytes *= 2) {  // 64 KiB to 32 GiB
    const std::string folder =
        memory + "hugepages/hugepages-" + std::to_string(bytes / 1024) + "kB/";
    if (read_system_line(folder + "nr_hugepages").empty()) continue;
    limits.huge_pages.push_back(
        {bytes, number_in(folder + "nr_hugepages"), number_in(folder + "free_hugepages")});
  }
  limits.transparent_huge_pages =
      chosen_of(read_system_line(memory + "transparent_hugepage/enabled"));
  return limits;
}

}  // namespace hearth
