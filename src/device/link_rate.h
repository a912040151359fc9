// What a link between a device and the host gives.
#pragma once

namespace hearth {

/// One direction: a copy takes `latency_s`, and its bytes over `bytes_per_s`.
struct LinkRate {
  double bytes_per_s = 0;  // 0: no limit, as fast as memory is
  double latency_s = 0;
};

/// Of a device: towards it and from it.
struct LinkRates {
  LinkRate in, out;
};

}  // namespace hearth
