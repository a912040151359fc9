#include <sched.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "support/temporary_directory.h"
#include "topology/control_group.h"
#include "topology/topology.h"

using namespace hearth;
using hearth::test::TemporaryDirectory;

namespace {

std::set<int> allowed_cpus() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::set<int> result;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) result.insert(i);
  }
  return result;
}

std::set<int> cpus_of(const Topology& t) {
  std::set<int> result;
  for (const TopologyCore& core : t.cores) result.insert(core.cpus.begin(), core.cpus.end());
  return result;
}

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("the machine is what the process may use") {
  const Topology t = detect_topology();
  CHECK(cpus_of(t) == allowed_cpus());
  CHECK(t.packages >= 1);
  CHECK(t.total_memory > uint64_t{64} << 20);
  for (const TopologyCore& core : t.cores) {
    CHECK(core.package < t.packages);
    CHECK(std::any_of(t.nodes.begin(), t.nodes.end(),
                      [&](const NumaNode& n) { return n.number == core.node; }));
  }
  CHECK(t.worker_cpus().size() == t.cores.size());
  CHECK(t.worker_cpus(1).size() == 1);
}

TEST_CASE("a narrower affinity narrows the machine") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int last = *allowed_cpus().rbegin();
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(last), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const Topology t = detect_topology();
  sched_setaffinity(0, sizeof before, &before);
  CHECK(cpus_of(t) == std::set<int>{last});
  CHECK(t.worker_cpus() == std::vector<int>{last});
}

TEST_CASE("the lowest limit of the control groups counts") {
  const TemporaryDirectory root;
  const auto limit = [&] { return control_group_memory_limit(root.path()); };
  CHECK(limit() == 0);

  write(root / "proc/self/cgroup", "0::/a/b\n");
  CHECK(limit() == 0);
  write(root / "sys/fs/cgroup/a/b/memory.max", "max\n");
  CHECK(limit() == 0);
  write(root / "sys/fs/cgroup/a/b/memory.max", "3000000\n");
  CHECK(limit() == 3000000);
  write(root / "sys/fs/cgroup/a/memory.max", "2000000\n");  // of the group above
  CHECK(limit() == 2000000);
  write(root / "sys/fs/cgroup/memory.max", "1000000\n");  // in a container: of its root
  CHECK(limit() == 1000000);

  write(root / "proc/self/cgroup", "9:cpu,cpuacct:/x\n5:hugetlb,memory:/job\n0::/\n");
  std::filesystem::remove(root / "sys/fs/cgroup/memory.max");
  write(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(limit() == 0);
  write(root / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "500000\n");
  CHECK(limit() == 500000);

  write(root / "proc/self/cgroup", "nonsense\n::\n5:memory\n\n");
  CHECK(limit() == 0);
}
