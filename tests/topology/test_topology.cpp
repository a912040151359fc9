#include <sched.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "support/allowed_cpus.h"
#include "support/raises.h"
#include "support/temporary_directory.h"
#include "topology/control_group.h"
#include "topology/topology.h"

using namespace hearth;
using hearth::test::allowed_cpus;
using hearth::test::TemporaryDirectory;

namespace {

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
  CHECK(t.has_real_nodes);
  CHECK(t.cpus() == static_cast<int>(allowed_cpus().size()));
  CHECK(t.total_memory > uint64_t{64} << 20);
  for (const TopologyCore& core : t.cores) {
    CHECK(std::any_of(t.packages.begin(), t.packages.end(),
                      [&](const TopologyPackage& p) { return p.index == core.package; }));
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

TEST_CASE("a test can divide the machine into nodes") {
  const Topology whole = detect_topology();
  const auto cores = static_cast<int>(whole.cores.size());
  for (int n = 1; n <= cores; ++n) {
    setenv("HEARTH_NODES", std::to_string(n).c_str(), 1);
    const Topology t = detect_topology(Devices::look);
    CHECK_FALSE(t.has_real_nodes);
    CHECK(cpus_of(t) == cpus_of(whole));
    REQUIRE(t.nodes.size() == static_cast<size_t>(n));
    CHECK(t.packages.size() == static_cast<size_t>(n));
    size_t seen = 0;
    for (int i = 0; i < n; ++i) {
      const NumaNode& node = t.nodes[static_cast<size_t>(i)];
      CHECK(node.number == i);
      CHECK(node.package == i);
      CHECK(node.memory == whole.total_memory / static_cast<uint64_t>(n));
      const size_t own = t.worker_cpus_of_node(i).size();
      CHECK(own >= whole.cores.size() / static_cast<size_t>(n));
      seen += own;
    }
    CHECK(seen == whole.cores.size());
    for (const TopologyRoot& root : t.roots) CHECK(root.nodes.size() == t.nodes.size());
  }
  for (const std::string bad : {"0", "-1", "x", "", "2.5"}) {
    setenv("HEARTH_NODES", bad.c_str(), 1);
    CHECK(test::raised_by([] { detect_topology(); }).code == ExitCode::usage);
  }
  setenv("HEARTH_NODES", std::to_string(cores + 1).c_str(), 1);
  CHECK(test::raised_by([] { detect_topology(); }).says("HEARTH_NODES"));
  unsetenv("HEARTH_NODES");
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
