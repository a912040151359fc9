// Replaces CUTLASS in the emulated kernels: the same tables, memory and accepted shapes, but a
// plain kernel computes.
#pragma once

#include <cstdint>

namespace hearth::test {

/// Number of products computed in this process.
int64_t emulated_grouped_products();

}  // namespace hearth::test
