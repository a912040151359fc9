// Rates of the link between a device and the host.
#pragma once

namespace hearth {

struct RootComplex;  // device/link.h

/// One direction: a copy takes latency_s + bytes / bytes_per_s.
struct LinkRate {
  double bytes_per_s = 0;  // 0: no limit, the speed of memory
  double latency_s = 0;
};

/// To the device and from it, while no other link passes bytes.
struct LinkRates {
  LinkRate in, out;
  const RootComplex* root = nullptr;  // links with the same one share it; null: none
};

}  // namespace hearth
