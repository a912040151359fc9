// The places of a run on a machine that is only described.
#pragma once

#include <string>
#include <string_view>

#include "setup/described_machine.h"
#include "setup/run_devices.h"

namespace hearth {

/// Gives a place that the list of devices gives no table the one of the machine. Such a table only
/// predicts.
void take_described_table(ComputePlace& place, const DescribedMachine& machine,
                          const std::string& name);
/// The same for the places of the host.
void take_host_tables(RunDevices& run, const DescribedMachine& machine);

/// Gives links without a rate the one that was measured on the machine, else what the accelerator in
/// whose place the device stands says of its link.
void take_described_links(VirtualOptions& device, const PlaceSeat& seat,
                          const DescribedMachine& machine);

/// A GPU of the machine. It is planned by the ops of this program, and never starts. Usage error if
/// the program has no such ops, or if the options do not say how much memory it has.
ComputePlace described_gpu(const DeviceItem& item, const PlaceSeat& seat,
                           const DeviceRequest& request, std::string_view op_set);

}  // namespace hearth
