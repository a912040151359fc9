// What `hearth doctor` finds out about a machine, and what it warns of.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/found_libraries.h"
#include "doctor/link_measurement.h"
#include "doctor/machine_limits.h"
#include "doctor/pci_link.h"
#include "topology/topology.h"

namespace hearth {

/// What is slower than it should be, or in the way.
struct Warning {
  std::string about;  // a PCI address, a link, a place, a limit
  std::string text;
};

/// What only the machine itself tells, not a file about it.
struct MachineFindings {
  std::string isa;
  std::vector<LinkMeasurement> links;
  MachineLimits limits;
  std::optional<FoundLibrary> mpi, nccl;
  std::vector<std::pair<std::string, PciLink>> pci_links;  // by PCI address
  std::vector<Warning> warnings;                           // of what could not be measured
};

struct Diagnosis {
  Topology topology;
  std::optional<MachineFindings> machine;  // nothing if the topology is of a file
  std::vector<Warning> warnings;
};

/// Adds the warnings, in this order: the machine's own; devices with less than half of the fastest
/// link of their kind, or with fewer lanes than they have; links that reach less than two thirds of
/// their nominal speed; nodes with cores and no memory, or with less than two thirds of the memory
/// of the largest node with cores; limits.
Diagnosis diagnose(Topology topology, std::optional<MachineFindings> machine);

}  // namespace hearth
