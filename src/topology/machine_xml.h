// This machine as hwloc sees it, in hwloc's XML.
#pragma once

#include <string>
#include <vector>

namespace hearth {

struct MachineXml {
  std::string text;       // version 2, with what the process may not use, too
  std::vector<int> cpus;  // of the affinity mask of the calling thread
};

/// Looks for PCI devices only if `devices`. Storage error (exit 4) if hwloc cannot read this
/// machine.
MachineXml read_machine(bool devices);

}  // namespace hearth
