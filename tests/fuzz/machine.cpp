// Any text is refused with an input error that names the file, or read to a machine whose parts agree:
// each core is of a package and a node that are there, and each device of a root complex; its
// description as JSON reads back to the same machine.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "doctor/diagnosis_json.h"
#include "setup/described_machine.h"
#include "support/bounded.h"
#include "support/json_mutator.h"

namespace {

using namespace hearth;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_device(const Topology& t, const PciDevice& device) {
  require(t.find_device(device.address) != nullptr);
  require(device.root.empty() || t.find_root(device.root) != nullptr);
  require(device.link_bytes_per_s >= 0 && std::isfinite(device.link_bytes_per_s));
  for (const int number : device.nodes) require(t.find_node(number) != nullptr);
}

void check(const Topology& t) {
  require(!t.cores.empty() && !t.nodes.empty() && !t.packages.empty() && !t.has_real_nodes);
  std::set<int> cpus, packages;
  for (const TopologyPackage& package : t.packages) require(packages.insert(package.index).second);
  size_t of_nodes = 0;
  for (const NumaNode& node : t.nodes) {
    of_nodes += t.worker_cpus_of_node(node.number).size();
    require(!node.package || packages.contains(*node.package));
  }
  require(of_nodes == t.cores.size());
  for (const TopologyCore& core : t.cores) {
    require(!core.cpus.empty() && packages.contains(core.package));
    require(core.node == -1 || t.find_node(core.node) != nullptr);
    for (const int cpu : core.cpus) require(cpus.insert(cpu).second);
  }
  require(t.cpus() == static_cast<int>(cpus.size()));
  for (const TopologyRoot& root : t.roots) require(!t.worker_cpus_near_root(root.name).empty());
  for (const PciDevice& device : t.accelerators) check_device(t, device);
  for (const PciDevice& device : t.nics) check_device(t, device);
  require(t.distances.empty() || t.distances.size() == t.nodes.size());
}

/// What doctor would print of the machine is read to the same machine.
void check_round_trip(const DescribedMachine& machine) {
  const auto printed = [](const Topology& topology) {
    return diagnosis_json({topology, std::nullopt, {}}).dump();
  };
  MachineDescription again;
  const std::string text = printed(machine.topology);
  again.add(text, machine.topology.source);
  require(printed(again.machine().topology) == text);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, test::mutate_json);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    MachineDescription description;
    {
      // A few digits make thousands of cores.
      const test::Bounded bound(size, {.times = 64, .bytes = uint64_t{8} << 20});
      description.add(text, "fuzz");
    }
    if (!description.has_machine()) return 0;  // tables alone
    const DescribedMachine machine = description.machine();
    check(machine.topology);
    check_round_trip(machine);
  } catch (const Error& error) {
    require(error.code() == ExitCode::input &&
            std::string_view(error.what()).starts_with("fuzz: "));
  }
  return 0;
}
