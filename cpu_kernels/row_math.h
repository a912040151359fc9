// Sums over f32 rows and over partial results, each in a fixed order.
#pragma once

#include <cstdint>

#include "device/host_stream.h"

namespace hearth {

/// sum a[i] b[i]: sixteen interleaved f32 sums, added in f64.
double dot(const float* a, const float* b, int64_t n);
/// sum a[i] b[i] c[i], likewise.
double dot3(const float* a, const float* b, const float* c, int64_t n);

/// target[i] += the sum over blocks, in order, of partial[block * stride + i] for i < n.
void add_in_order(HostStream& stream, const float* partial, int64_t blocks, int64_t stride,
                  float* target, int64_t n);

}  // namespace hearth
