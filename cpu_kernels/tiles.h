// What the ops of this room share: cutting work into tiles, and checks of views.
#pragma once

#include <algorithm>

#include "device/host_stream.h"
#include "ops/view.h"

namespace hearth {

/// Runs f(begin, end, worker) over [0, n) in blocks of `block`.
template <class F>
void for_blocks(HostStream& stream, int64_t n, int64_t block, const F& f) {
  stream.pool().run((n + block - 1) / block, [&](int64_t tile, int worker) {
    f(tile * block, std::min(n, (tile + 1) * block), worker);
  });
}

/// Rows of `width` elements that make a tile of some 16k elements: enough to hide its start, few
/// enough to balance.
inline int64_t row_block(int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
}

}  // namespace hearth
