// What stands in CUTLASS's place in the emulated kernels: its tables, its memory and what it takes,
// computed by a plain kernel.
#pragma once

#include <cstdint>

namespace hearth::test {

/// Products that it has computed in this process.
int64_t emulated_grouped_products();

}  // namespace hearth::test
