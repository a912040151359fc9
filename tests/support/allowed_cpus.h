// The CPUs that the calling thread may use. Not a check of Catch2, so that any thread may ask.
#pragma once

#include <sched.h>

#include <cerrno>
#include <set>
#include <system_error>

namespace hearth::test {

inline std::set<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  std::set<int> result;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) result.insert(i);
  }
  return result;
}

}  // namespace hearth::test
