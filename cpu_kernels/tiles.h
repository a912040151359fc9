// Cuts work into tiles, for the ops of this room.
#pragma once

#include <algorithm>

#include "device/host_stream.h"
#include "ops/view.h"

namespace hearth {

/// Calls f(begin, end, worker) for blocks of [0, n) of size `block`, on the stream's pool.
template <class F>
void for_blocks(HostStream& stream, int64_t n, int64_t block, const F& f) {
  stream.pool().run((n + block - 1) / block, [&](int64_t tile, int worker) {
    f(tile * block, std::min(n, (tile + 1) * block), worker);
  });
}

/// Rows per tile, for rows of `width` elements: about 16k elements, enough to hide the tile's
/// start-up cost and few enough to balance the load.
inline int64_t row_block(int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
}

}  // namespace hearth
