// Rows of f32 as bf16. Products in bf16 round their operands. So what several products read is rounded
// once: they read half of the bytes, and make the same bits.
#pragma once

#include "base/arena.h"
#include "device/host_stream.h"
#include "ops/view.h"

namespace hearth {

/// n elements, to nearest, as the products round: those of pairs take denormals for zeros. `to` may
/// begin where `from` begins.
void round_row(const float* from, bf16* to, int64_t n);

/// x, rounded, in memory of the scratch.
ConstView rounded_rows(HostStream& host, Scratch& scratch, const ConstView& x);

}  // namespace hearth
