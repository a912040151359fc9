// The places of a run on a machine that is only described.
#pragma once

#include <string>

#include "setup/described_machine.h"
#include "setup/run_devices.h"

namespace hearth {

/// Gives a place that the list of devices gives no table the one of the machine. Such a table only
/// predicts.
void take_described_table(ComputePlace& place, const DescribedMachine& machine,
                          const std::string& name);
/// The same for the places of the host.
void take_host_tables(RunDevices& run, const DescribedMachine& machine);

/// Gives links without a rate the one that was measured on the machine.
void take_described_links(VirtualOptions& device, const PlaceSeat& seat,
                          const DescribedMachine& machine);
/// Gives links without a rate what the accelerator in whose place the device stands says of its link.
void take_nominal_links(VirtualOptions& device, const PlaceSeat& seat);

/// A GPU of the machine. `ops` say what it needs of scratch; it never starts. Usage error if there are
/// none, or if neither the machine nor the options say how much memory it has.
ComputePlace described_gpu(const DeviceItem& item, const PlaceSeat& seat,
                           const DeviceRequest& request, const OpSet* ops);

}  // namespace hearth
